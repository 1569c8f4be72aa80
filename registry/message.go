package registry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"time"

	"github.com/twmb/avro"
)

// readMessage reads a person's JSON as a value of schema. Avro's own JSON
// reader does the work; this mends what it takes too lightly (unknown fields)
// or too strictly (times that a person writes).
func readMessage(schema *avro.Schema, message []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(message))
	d.UseNumber() // a long above 2^53 must arrive whole
	var in any
	if err := d.Decode(&in); err != nil {
		return nil, fmt.Errorf("not JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("not JSON: more follows after the first value")
	}
	mended, err := mend(schema.Root().ExpandReferences(), in, "")
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(mended)
	if err != nil {
		return nil, err
	}
	var v any
	if err := schema.DecodeJSON(text, &v); err != nil {
		return nil, err
	}
	return v, nil
}

// mend walks a value along its schema. What does not fit is left for Avro's
// reader to refuse.
func mend(n *avro.SchemaNode, v any, path string) (any, error) {
	switch n.Type {
	case "record", "error":
		return mendRecord(n, v, path)
	case "union":
		return mendUnion(n, v, path)
	case "array":
		return mendArray(n, v, path)
	case "map":
		return mendMap(n, v, path)
	case "int", "long":
		return mendTime(n.LogicalType, v, path)
	}
	return v, nil
}

func mendRecord(n *avro.SchemaNode, v any, path string) (any, error) {
	object, ok := v.(map[string]any)
	if !ok {
		return v, nil
	}
	types := make(map[string]*avro.SchemaNode, len(n.Fields))
	for i := range n.Fields {
		types[n.Fields[i].Name] = &n.Fields[i].Type
	}
	for name, value := range object {
		t, ok := types[name]
		if !ok {
			return nil, fmt.Errorf("field %s%s: %s has no such field", path, name, n.Name)
		}
		mended, err := mend(t, value, path+name+".")
		if err != nil {
			return nil, err
		}
		object[name] = mended
	}
	return object, nil
}

// mendUnion follows the one branch that is not null. With more than one it
// cannot know which is meant, unless the value names it.
func mendUnion(n *avro.SchemaNode, v any, path string) (any, error) {
	object, isObject := v.(map[string]any)
	var only *avro.SchemaNode
	for i := range n.Branches {
		b := &n.Branches[i]
		if b.Type == "null" {
			continue
		}
		if isObject && len(object) == 1 {
			if name, inner := named(b, object); inner != nil {
				mended, err := mend(b, inner, path)
				return map[string]any{name: mended}, err
			}
		}
		if only != nil {
			return v, nil
		}
		only = b
	}
	if only == nil || v == nil {
		return v, nil
	}
	return mend(only, v, path)
}

// named is the value in {"branch": value}, nil if object names another. A
// record may be named with or without its namespace.
func named(n *avro.SchemaNode, object map[string]any) (string, any) {
	names := []string{n.Type}
	if n.Name != "" {
		names = []string{n.Name, n.Namespace + "." + n.Name}
	}
	for _, name := range names {
		if v, ok := object[name]; ok {
			return name, v
		}
	}
	return "", nil
}

func mendArray(n *avro.SchemaNode, v any, path string) (any, error) {
	items, _ := v.([]any)
	for i := range items {
		mended, err := mend(n.Items, items[i], fmt.Sprintf("%s%d.", path, i))
		if err != nil {
			return nil, err
		}
		items[i] = mended
	}
	return v, nil
}

func mendMap(n *avro.SchemaNode, v any, path string) (any, error) {
	object, _ := v.(map[string]any)
	for key := range object {
		mended, err := mend(n.Values, object[key], path+key+".")
		if err != nil {
			return nil, err
		}
		object[key] = mended
	}
	return v, nil
}

// mendTime turns an RFC 3339 time into the number the logical type stores.
func mendTime(logical string, v any, path string) (any, error) {
	text, ok := v.(string)
	if !ok {
		return v, nil
	}
	layout := time.RFC3339Nano
	if logical == "date" {
		layout = time.DateOnly
	}
	t, err := time.Parse(layout, text)
	n, known := epoch(logical, t)
	switch {
	case !known:
		return v, nil
	case err != nil:
		return nil, fmt.Errorf("field %s: %q is no %s time", path[:max(0, len(path)-1)], text, layout)
	}
	return json.Number(strconv.FormatInt(n, 10)), nil
}

func epoch(logical string, t time.Time) (n int64, known bool) {
	switch logical {
	case "timestamp-millis":
		return t.UnixMilli(), true
	case "timestamp-micros":
		return t.UnixMicro(), true
	case "timestamp-nanos":
		return t.UnixNano(), true
	case "date":
		return int64(math.Floor(float64(t.Unix()) / 86400)), true
	}
	return 0, false
}
