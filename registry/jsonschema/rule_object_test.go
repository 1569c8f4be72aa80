package jsonschema_test

import "github.com/waybillhq/waybill/registry/jsonschema"

func propertyRules() []rule {
	const need, needA = `"required":["b"]`, `"required":["a"]`
	const withDefault = `"b":{"type":"string","default":"x"}`
	return []rule{
		{"open, optional property comes", obj(propA), obj(propA + "," + propB), jsonschema.OptionalAddedToOpen, fine, objects},
		{"open, property that may be anything comes", obj(propA), obj(propA + `,"b":{}`), fine, fine, objects},
		{"open, required property comes", obj(propA), obj(propA+","+propB, need), jsonschema.RequiredAddedToOpen, fine, objects},
		{"open, required property with default comes", obj(propA), obj(propA+","+withDefault, need), jsonschema.RequiredDefaultAddedToOpen, fine, objects},
		{"closed, optional property comes", obj(propA, closed), obj(propA+","+propB, closed), fine, jsonschema.RemovedFromClosed, objects},
		{"closed, required property comes", obj(propA, closed), obj(propA+","+propB, closed, need), jsonschema.RequiredAddedToUnopen, jsonschema.RemovedFromClosed, objects},
		{"closed, required property with default comes", obj(propA, closed), obj(propA+","+withDefault, closed, need), fine, jsonschema.RemovedFromClosed, objects},
		{"closed, property that takes nothing goes", obj(`"a":false`, closed), obj(``, closed), fine, fine, objects},
		{"closed, opened with a property less", obj(propA+","+propB, closed), obj(propA), fine, jsonschema.PropertiesClosed, objects},
		{"property of another type", obj(propA), obj(`"a":{"type":"integer"}`), jsonschema.TypeChanged, jsonschema.TypeChanged, objects},
		{"property within a property comes", obj(`"o":` + obj(propA)), obj(`"o":` + obj(propA+","+propB)), jsonschema.OptionalAddedToOpen, fine, objects},
		{"property is required", obj(propA), obj(propA, needA), jsonschema.RequiredAdded, fine, objects},
		{"property with default is required", obj(`"a":{"type":"string","default":""}`), obj(`"a":{"type":"string","default":""}`, needA), fine, fine, objects},
		{"a default of null is one", obj(`"a":{"type":"null"}`), obj(`"a":{"type":"null","default":null}`, needA), fine, fine, objects},
		{"required names that no property declares are not looked at", obj(propA), obj(propA, `"required":["z"]`), fine, fine, objects},
		{"maxProperties comes", obj(propA), obj(propA, `"maxProperties":3`), jsonschema.MaxPropertiesAdded, fine, objects},
		{"maxProperties grows", obj(propA, `"maxProperties":3`), obj(propA, `"maxProperties":4`), fine, jsonschema.MaxPropertiesDecreased, objects},
		{"minProperties comes", obj(propA), obj(propA, `"minProperties":3`), jsonschema.MinPropertiesAdded, fine, objects},
		{"minProperties grows", obj(propA, `"minProperties":3`), obj(propA, `"minProperties":4`), jsonschema.MinPropertiesIncreased, fine, objects},
		{"propertyNames is not looked into", obj(propA, `"propertyNames":{"maxLength":5}`), obj(propA, `"propertyNames":{"maxLength":3}`), fine, fine, objects},
		{"a name with a slash", obj(`"a/b~":{"type":"string"}`), obj(`"a/b~":{"type":"integer"}`), jsonschema.TypeChanged, jsonschema.TypeChanged, objects},
		{"properties without a type are an object's", `{"properties":{` + propA + `}}`, obj(propA), fine, fine, objects},
	}
}

func restRules() []rule {
	const strings, ints, latest = `"additionalProperties":{"type":"string"}`, `"additionalProperties":{"type":"integer"}`, `"$schema":"https://json-schema.org/draft/2020-12/schema"`
	const pattern = `"patternProperties":{"^x":{"type":"integer"}}`
	left := func(s string) string { return obj(propA, latest, `"unevaluatedProperties":`+s) }
	none := obj(propA, latest)
	return []rule{
		{"closed", obj(propA), obj(propA, closed), jsonschema.PropertiesClosed, fine, objects},
		{"additionalProperties: true is as without", obj(propA), obj(propA, `"additionalProperties":true`), fine, fine, objects},
		{"additionalProperties: {} is as without", obj(propA), obj(propA, `"additionalProperties":{}`), fine, fine, ours},
		{"other properties restricted", obj(propA), obj(propA, strings), jsonschema.PropertiesNarrowed, fine, objects},
		{"other properties of another type", obj(propA, strings), obj(propA, ints), jsonschema.TypeChanged, jsonschema.TypeChanged, objects},
		{"closed, other properties allowed in part", obj(propA, closed), obj(propA, strings), fine, jsonschema.PropertiesClosed, objects},
		{"partly open, a property that is covered comes", obj(propA, strings), obj(propA+","+propB, strings), fine, fine, objects},
		{"partly open, a property that is not covered comes", obj(propA, ints), obj(propA+","+propB, ints), jsonschema.AddedNotCovered, jsonschema.RemovedNotCovered, objects},
		{"partly open, a covered property is required", obj(propA, strings), obj(propA+","+propB, strings, `"required":["b"]`), jsonschema.RequiredAddedToUnopen, fine, objects},
		{"a pattern covers a property that comes", obj(propA, pattern), obj(propA+`,"x1":{"type":"integer"}`, pattern), fine, fine, objects},
		{"a pattern does not cover a property that comes", obj(propA, pattern), obj(propA+`,"x1":{"type":"string"}`, pattern), jsonschema.AddedNotCovered, jsonschema.RemovedNotCovered, objects},
		{"a pattern makes the rest partly open", obj(propA, pattern), obj(propA+","+propB, pattern), fine, jsonschema.RemovedFromClosed, objects},
		{"beside a pattern, anything covers what comes", obj(propA, pattern, `"additionalProperties":{}`), obj(propA+","+propB, pattern, `"additionalProperties":{}`), jsonschema.AddedNotCovered, fine, objects},
		{"what patterns ask is not looked into", obj(propA, pattern), obj(propA, `"patternProperties":{"^x":{"type":"string"}}`), fine, fine, objects},
		{"unevaluated properties closed", none, left(`false`), jsonschema.UnevaluatedPropsClosed, fine, objects},
		{"unevaluated properties restricted", none, left(`{"type":"string"}`), jsonschema.UnevaluatedPropsNarrowed, fine, objects},
		{"unevaluated properties: true is as without", none, left(`true`), fine, fine, ours},
		{"unevaluated properties widened", left(`{"type":"integer"}`), left(`{"type":"number"}`), fine, jsonschema.TypeNarrowed, objects},
		{"unevaluated properties allowed in part", left(`false`), left(`{"type":"string"}`), fine, jsonschema.UnevaluatedPropsClosed, objects},
		{"unevaluated properties cover one that comes", left(`{"type":"string"}`), obj(propA+","+propB, latest, `"unevaluatedProperties":{"type":"string"}`), fine, fine, objects},
	}
}

func dependencyRules() []rule {
	with := func(d string) string { return obj(propA, `"dependencies":{`+d+`}`) }
	later := func(key, d string) string {
		return obj(propA, `"$schema":"https://json-schema.org/draft/2020-12/schema"`, `"`+key+`":{`+d+`}`)
	}
	return []rule{
		{"dependency comes", obj(propA), with(`"a":["b"]`), jsonschema.DependencyAdded, fine, objects},
		{"dependency asks for more", with(`"a":["b"]`), with(`"a":["b","c"]`), jsonschema.DependencyExtended, fine, objects},
		{"dependency changes", with(`"a":["b"]`), with(`"a":["c"]`), jsonschema.DependencyChanged, jsonschema.DependencyChanged, objects},
		{"dependency on a schema comes", obj(propA), with(`"a":{"minProperties":2}`), jsonschema.DependencySchemaAdded, fine, objects},
		{"dependency on a schema, stricter", with(`"a":{"minProperties":2}`), with(`"a":{"minProperties":3}`), jsonschema.MinPropertiesIncreased, fine, objects},
		{"dependentRequired comes", later("dependentRequired", ``), later("dependentRequired", `"a":["b"]`), jsonschema.DependencyAdded, fine, objects},
		{"dependentSchemas, stricter", later("dependentSchemas", `"a":{"maxProperties":3}`), later("dependentSchemas", `"a":{"maxProperties":2}`), jsonschema.MaxPropertiesDecreased, fine, objects},
		{"dependencies of two drafts", with(`"a":["b"]`), later("dependentRequired", `"a":["b"]`), fine, fine, objects},
	}
}
