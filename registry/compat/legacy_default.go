package compat

import (
	"encoding/json"
	"errors"
	"strings"
)

var errNoDefault = errors.New("no default can be made up")

// fit is a default of a type.
func (m *defaults) fit(typ any) (any, error) {
	if m.budget--; m.budget < 0 {
		return nil, errNoDefault
	}
	switch t := typ.(type) {
	case []any: // the first branch's
		if len(t) > 0 {
			return m.fit(t[0])
		}
	case string:
		return m.fitName(t)
	case map[string]any:
		return m.fitObject(t)
	}
	return nil, errNoDefault
}

func (m *defaults) fitName(name string) (any, error) {
	switch name {
	case "null":
		return nil, nil //nolint:nilnil // the default of null is null
	case "boolean":
		return false, nil
	case "int", "long", "float", "double":
		return 0, nil
	case "string", "bytes":
		return "", nil
	}
	if def, ok := m.types[name]; ok {
		return m.fit(def)
	}
	return nil, errNoDefault
}

func (m *defaults) fitObject(t map[string]any) (any, error) {
	switch t["type"] {
	case "array":
		return []any{}, nil
	case "map":
		return map[string]any{}, nil
	case "enum":
		if symbols, _ := t["symbols"].([]any); len(symbols) > 0 {
			return symbols[0], nil
		}
	case "fixed":
		size, _ := t["size"].(json.Number)
		n, err := size.Int64()
		if err == nil && n >= 0 && n <= mendBudget {
			return strings.Repeat("\x00", int(n)), nil
		}
	case "record", "error":
		return m.fitRecord(t)
	default:
		return m.fit(t["type"])
	}
	return nil, errNoDefault
}

func (m *defaults) fitRecord(t map[string]any) (any, error) {
	out := map[string]any{}
	fields, _ := t["fields"].([]any)
	for _, f := range fields {
		field, ok := f.(map[string]any)
		name, named := field["name"].(string)
		if !ok || !named {
			return nil, errNoDefault
		}
		fit, err := m.fit(field["type"])
		if err != nil {
			return nil, err
		}
		out[name] = fit
	}
	return out, nil
}
