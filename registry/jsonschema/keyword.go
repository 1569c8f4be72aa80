package jsonschema

import (
	"slices"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// speaks is whether a schema says something besides its references.
func speaks(s *jsonschema.Schema) bool {
	return s.Types != nil || s.Enum != nil || s.Const != nil || s.Not != nil || s.If != nil ||
		s.AllOf != nil || s.AnyOf != nil || s.OneOf != nil ||
		ofArray(s) || ofObject(s) || ofNumber(s) || ofString(s)
}

// untyped are the shapes that a schema has keywords of without naming the type.
func untyped(s *jsonschema.Schema) []shape {
	var out []shape
	for _, c := range []struct {
		of   bool
		sh   shape
		also string
	}{{ofArray(s), array, ""}, {ofObject(s), properties, ""}, {ofNumber(s), number, "integer"}, {ofString(s), text, ""}} {
		named := s.Types != nil && slices.ContainsFunc(s.Types.ToStrings(), func(t string) bool { return t == string(c.sh) || t == c.also })
		if c.of && !named {
			out = append(out, c.sh)
		}
	}
	return out
}

func ofArray(s *jsonschema.Schema) bool {
	return s.Items != nil || s.AdditionalItems != nil || s.PrefixItems != nil || s.Items2020 != nil || s.MinItems != nil ||
		s.MaxItems != nil || s.UniqueItems || s.Contains != nil || s.UnevaluatedItems != nil
}

func ofObject(s *jsonschema.Schema) bool {
	return s.Properties != nil || s.PatternProperties != nil || s.AdditionalProperties != nil || s.Required != nil ||
		s.MinProperties != nil || s.MaxProperties != nil || s.Dependencies != nil || s.DependentRequired != nil ||
		s.DependentSchemas != nil || s.PropertyNames != nil || s.UnevaluatedProperties != nil
}

func ofNumber(s *jsonschema.Schema) bool {
	return s.Minimum != nil || s.Maximum != nil || s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil || s.MultipleOf != nil
}

func ofString(s *jsonschema.Schema) bool {
	return s.MinLength != nil || s.MaxLength != nil || s.Pattern != nil
}
