package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// depthLimit bounds how deep a text is nested.
const depthLimit = 200

// object is a JSON object whose members keep their order.
type object []member

type member struct {
	key   string
	value any
}

// Compact is a text as Confluent's registry keeps it: without white space, with
// the members of objects in their order, and with strings escaped in one way.
func Compact(text string) (string, error) { return rewrite(text, false) }

// Normal is a text whose objects have their members in the order of the names,
// which is all that Confluent's registry makes equal.
func Normal(text string) (string, error) { return rewrite(text, true) }

func rewrite(text string, sorted bool) (string, error) {
	v, err := decode(text)
	if err != nil {
		return "", err
	}
	var out bytes.Buffer
	write(&out, v, sorted)
	return out.String(), nil
}

// decode reads a text as nil, bool, json.Number, string, []any and object.
func decode(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	v, err := decodeValue(d, 0)
	if err != nil {
		return nil, notJSON(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("it is not JSON: something follows the end of the schema")
	}
	return v, nil
}

func notJSON(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is not JSON: it ends too early")
	}
	return fmt.Errorf("it is not JSON: %w", err)
}

func decodeValue(d *json.Decoder, depth int) (any, error) {
	if depth > depthLimit {
		return nil, fmt.Errorf("it is nested deeper than %d", depthLimit)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t {
	case json.Delim('{'):
		return decodeObject(d, depth)
	case json.Delim('['):
		list := []any{}
		for d.More() {
			v, err := decodeValue(d, depth+1)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := d.Token()
		return list, err
	}
	return t, nil
}

// decodeObject takes the last of several members of one name, in the place of
// the first, as Jackson does.
func decodeObject(d *json.Decoder, depth int) (any, error) {
	o, at := object{}, map[string]int{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return nil, err
		}
		key, _ := t.(string)
		v, err := decodeValue(d, depth+1)
		if err != nil {
			return nil, err
		}
		if i, there := at[key]; there {
			o[i].value = v
			continue
		}
		at[key] = len(o)
		o = append(o, member{key, v})
	}
	_, err := d.Token()
	return o, err
}

func write(out *bytes.Buffer, v any, sorted bool) {
	switch v := v.(type) {
	case object:
		if sorted {
			v = slices.Clone(v)
			slices.SortFunc(v, func(a, b member) int { return strings.Compare(a.key, b.key) })
		}
		out.WriteByte('{')
		for i, m := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			quote(out, m.key)
			out.WriteByte(':')
			write(out, m.value, sorted)
		}
		out.WriteByte('}')
	case []any:
		out.WriteByte('[')
		for i, e := range v {
			if i > 0 {
				out.WriteByte(',')
			}
			write(out, e, sorted)
		}
		out.WriteByte(']')
	case string:
		quote(out, v)
	case json.Number:
		out.WriteString(v.String())
	case bool:
		fmt.Fprint(out, v)
	default:
		out.WriteString("null")
	}
}

// quote escapes as Jackson does: texts of one schema must be equal byte for
// byte, whichever registry wrote them.
func quote(out *bytes.Buffer, s string) {
	const short = "\b\t\n\f\r\"\\"
	out.WriteByte('"')
	for _, r := range s {
		switch i := strings.IndexRune(short, r); {
		case i >= 0:
			out.WriteByte('\\')
			out.WriteByte("btnfr\"\\"[i])
		case r < ' ':
			fmt.Fprintf(out, `\u%04X`, r)
		default:
			out.Write(utf8.AppendRune(nil, r))
		}
	}
	out.WriteByte('"')
}
