package gen

import (
	"errors"
	"fmt"
)

// primitives and logical types in the Go types that twmb/avro reads and writes
// without a codec of ours.
var primitives = map[string]string{
	"boolean": "bool", "int": "int32", "long": "int64", "float": "float32", "double": "float64",
	"string": "string", "bytes": "[]byte",
}

var logicals = map[string]string{
	"string/uuid": "uuid.UUID", "int/date": "time.Time", "bytes/decimal": "*big.Rat",
	"long/timestamp-millis": "time.Time", "long/timestamp-micros": "time.Time",
}

// fieldType is the Go type of a record's field; ["null", T] is a pointer.
func (m *model) fieldType(n *node, space string) (goType string, nullable bool, err error) {
	goType, err = m.goType(n, space)
	return goType, n != nil && n.kind == array, err
}

func (m *model) goType(n *node, space string) (string, error) {
	switch {
	case n == nil:
		return "", errors.New("has no type")
	case n.kind == array:
		return m.unionType(n, space)
	case n.kind == scalar:
		return m.refType(n, space)
	case n.defines():
		name, _ := fullName(n, space)
		return m.types[name].goName, nil
	}
	switch t := n.str("type"); t {
	case "array":
		in, err := m.goType(n.get("items"), space)
		return "[]" + in, err
	case "map":
		in, err := m.goType(n.get("values"), space)
		return "map[string]" + in, err
	default:
		return m.logicalType(n, t, space)
	}
}

func (m *model) refType(n *node, space string) (string, error) {
	name, _ := n.text()
	if t, ok := primitives[name]; ok {
		return t, nil
	}
	if t, ok := m.types[qualify(name, space)]; ok {
		return t.goName, nil
	}
	switch name {
	case "null", "fixed":
		return "", fmt.Errorf("type %s is not supported yet", name)
	}
	return "", fmt.Errorf("type %s is not defined in any file", n.compact())
}

// logicalType refuses a logical type it does not know, though Avro says to
// ignore it: a misspelled one would pass for its base type in silence.
func (m *model) logicalType(n *node, base, space string) (string, error) {
	logical := n.get("logicalType")
	if logical == nil {
		t := n.get("type")
		if t == nil {
			return "", fmt.Errorf("type %s is not defined in any file", n.compact())
		}
		return m.goType(t, space)
	}
	name, _ := logical.text()
	if t, ok := logicals[base+"/"+name]; ok {
		return t, nil
	}
	return "", fmt.Errorf("logical type %s on %s is not supported yet", logical.compact(), base)
}

// unionType is a pointer; *big.Rat is one already.
func (m *model) unionType(n *node, space string) (string, error) {
	if len(n.items) == 2 {
		if first, _ := n.items[0].text(); first == "null" {
			t, err := m.goType(n.items[1], space)
			if err != nil || t[0] == '*' {
				return t, err
			}
			return "*" + t, nil
		}
	}
	return "", fmt.Errorf(`union %s is not supported yet, only ["null", T]`, n.compact())
}
