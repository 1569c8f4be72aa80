package server

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
)

// javaText writes a schema as Avro for Java does, and so Confluent's registry
// and most of its clients: a text in normal form is then the one they send.
func javaText(text string) (string, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return "", err
	}
	var out bytes.Buffer
	writeSchema(&out, v, "")
	return out.String(), nil
}

// writeSchema writes a schema that stands in a namespace.
func writeSchema(out *bytes.Buffer, v any, space string) {
	switch v := v.(type) {
	case []any:
		writeList(out, v, func(e any) { writeSchema(out, e, space) })
	case map[string]any:
		dropNames(v)
		if own, ok := v["namespace"].(string); ok {
			space = own
		}
		if word, ok := v["type"].(string); ok && len(v) == 1 {
			out.Write(encode(word)) // a primitive type that nothing is left of
			return
		}
		first := []string{"type", "name", "namespace", "doc", "fields", "symbols", "size", "items", "values", "default", "logicalType", "precision", "scale"}
		writeObject(out, v, first, "aliases", func(key string, e any) { writeAttribute(out, key, e, space) })
	case string:
		out.Write(encode(shortName(v, space)))
	default:
		out.Write(encode(v))
	}
}

// dropNames leaves out what a type without a name has no use for. Java reads
// over it, so an int that somebody named is an int.
func dropNames(v map[string]any) {
	switch v["type"] {
	case "record", "error", "enum", "fixed":
		return
	}
	for _, key := range []string{"name", "namespace", "doc", "aliases"} {
		delete(v, key)
	}
}

func writeAttribute(out *bytes.Buffer, key string, e any, space string) {
	list, isList := e.([]any)
	switch {
	case key == "type" || key == "items" || key == "values":
		writeSchema(out, e, space)
	case key == "fields" && isList:
		writeList(out, list, func(f any) { writeField(out, f, space) })
	case key == "aliases" && isList:
		writeList(out, list, func(a any) {
			if name, ok := a.(string); ok {
				a = shortName(name, space)
			}
			out.Write(encode(a))
		})
	default:
		out.Write(encode(e))
	}
}

func writeField(out *bytes.Buffer, v any, space string) {
	field, ok := v.(map[string]any)
	if !ok {
		out.Write(encode(v))
		return
	}
	if field["order"] == "ascending" { // as it is without
		delete(field, "order")
	}
	writeObject(out, field, []string{"name", "type", "doc", "default", "order", "aliases"}, "", func(key string, e any) {
		if key == "type" {
			writeSchema(out, e, space)
			return
		}
		out.Write(encode(e))
	})
}

// shortName leaves out a namespace that is understood.
func shortName(name, space string) string {
	short, ok := strings.CutPrefix(name, space+".")
	if !ok || space == "" || strings.Contains(short, ".") || slices.Contains(avroTypes(), short) {
		return name
	}
	return short
}

// avroTypes are words that cannot stand for a name.
func avroTypes() []string {
	return []string{"null", "boolean", "int", "long", "float", "double", "bytes", "string", "record", "error", "enum", "array", "map", "fixed", "union"}
}

// writeObject writes the attributes named first, then those of people's own,
// then last.
func writeObject(out *bytes.Buffer, v map[string]any, first []string, last string, write func(key string, e any)) {
	rest := slices.DeleteFunc(slices.Sorted(maps.Keys(v)), func(key string) bool {
		return key == last || slices.Contains(first, key)
	})
	between := ""
	out.WriteByte('{')
	for _, key := range append(append(slices.Clone(first), rest...), last) {
		e, ok := v[key]
		if !ok {
			continue
		}
		out.WriteString(between)
		between = ","
		out.Write(encode(key))
		out.WriteByte(':')
		write(key, e)
	}
	out.WriteByte('}')
}

func writeList(out *bytes.Buffer, all []any, write func(any)) {
	out.WriteByte('[')
	for i, e := range all {
		if i > 0 {
			out.WriteByte(',')
		}
		write(e)
	}
	out.WriteByte(']')
}
