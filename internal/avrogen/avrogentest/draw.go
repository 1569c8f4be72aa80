// Package avrogentest draws random values of generated contracts, so that a
// property can be claimed of every contract a package has, and of those it
// gets later.
package avrogentest

import (
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
)

// Event draws a value of contract c: a pointer of the type that ptr, the
// package's New, returned. Every field has the precision its schema keeps.
func Event(t *rapid.T, c *event.Contract, ptr event.Data) event.Data {
	d := drawer{t: t, defs: map[string]avro.SchemaNode{}}
	v := reflect.New(reflect.TypeOf(ptr).Elem())
	d.value(*c.Schema.Root(), v.Elem())
	return v.Interface().(event.Data)
}

type drawer struct {
	t     *rapid.T
	defs  map[string]avro.SchemaNode // named types met so far, by name without namespace: their Go names differ
	depth int
}

func (d *drawer) value(n avro.SchemaNode, v reflect.Value) {
	switch n.Type {
	case "union":
		d.nullable(n.Branches[1], v)
	case "record":
		d.record(n, v)
	case "enum":
		d.defs[n.Name] = n
		v.SetString(rapid.SampledFrom(n.Symbols).Draw(d.t, n.Name))
	case "array":
		d.slice(*n.Items, v)
	case "map":
		v.Set(reflect.MakeMap(v.Type()))
		for _, k := range rapid.SliceOfN(rapid.String(), 0, 3).Draw(d.t, "keys") {
			item := reflect.New(v.Type().Elem()).Elem()
			d.value(*n.Values, item)
			v.SetMapIndex(reflect.ValueOf(k), item)
		}
	default:
		if def, ok := d.defs[n.Type[strings.LastIndexByte(n.Type, '.')+1:]]; ok {
			d.value(def, v)
			return
		}
		v.Set(reflect.ValueOf(d.scalar(n)).Convert(v.Type()))
	}
}

func (d *drawer) nullable(n avro.SchemaNode, v reflect.Value) {
	if d.depth > 4 || rapid.Bool().Draw(d.t, "null") {
		d.learn(n)
		return
	}
	if n.LogicalType == "decimal" {
		d.value(n, v)
		return
	}
	v.Set(reflect.New(v.Type().Elem()))
	d.value(n, v.Elem())
}

// learn keeps the definitions inside a value that is not drawn.
func (d *drawer) learn(n avro.SchemaNode) {
	if n.Name != "" {
		d.defs[n.Name] = n
	}
	for _, f := range n.Fields {
		d.learn(f.Type)
	}
	for _, b := range n.Branches {
		d.learn(b)
	}
	for _, in := range []*avro.SchemaNode{n.Items, n.Values} {
		if in != nil {
			d.learn(*in)
		}
	}
}

func (d *drawer) record(n avro.SchemaNode, v reflect.Value) {
	d.defs[n.Name] = n
	d.depth++
	defer func() { d.depth-- }()
	for _, f := range n.Fields {
		d.value(f.Type, byTag(d.t, v, f.Name))
	}
}

func byTag(t *rapid.T, v reflect.Value, name string) reflect.Value {
	for i := range v.NumField() {
		if v.Type().Field(i).Tag.Get("avro") == name {
			return v.Field(i)
		}
	}
	t.Fatalf("%s has no field for %s", v.Type(), name)
	return reflect.Value{}
}

func (d *drawer) slice(n avro.SchemaNode, v reflect.Value) {
	size := rapid.IntRange(0, 3).Draw(d.t, "size")
	v.Set(reflect.MakeSlice(v.Type(), size, size))
	d.learn(n)
	for i := range size {
		d.value(n, v.Index(i))
	}
}

func (d *drawer) scalar(n avro.SchemaNode) any {
	switch n.Type + "/" + n.LogicalType {
	case "string/uuid":
		return uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(d.t, "uuid"))
	case "int/date":
		return time.Unix(86400*rapid.Int64Range(-700_000, 2_900_000).Draw(d.t, "date"), 0).UTC()
	case "long/timestamp-millis":
		return time.UnixMilli(rapid.Int64Range(-6e13, 2.5e14).Draw(d.t, "millis")).UTC()
	case "long/timestamp-micros":
		return time.UnixMicro(rapid.Int64Range(-6e16, 2.5e17).Draw(d.t, "micros")).UTC()
	case "bytes/decimal":
		limit := int64(math.Pow10(min(n.Precision, 18))) - 1
		scale := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n.Scale)), nil)
		return new(big.Rat).SetFrac(big.NewInt(rapid.Int64Range(-limit, limit).Draw(d.t, "unscaled")), scale)
	}
	return d.primitive(n.Type)
}

func (d *drawer) primitive(typ string) any {
	switch typ {
	case "boolean":
		return rapid.Bool().Draw(d.t, typ)
	case "int":
		return rapid.Int32().Draw(d.t, typ)
	case "long":
		return rapid.Int64().Draw(d.t, typ)
	case "float":
		return rapid.Float32().Draw(d.t, typ)
	case "double":
		return rapid.Float64().Draw(d.t, typ)
	case "string":
		return rapid.String().Draw(d.t, typ)
	case "bytes":
		return rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(d.t, typ)
	}
	panic(fmt.Sprintf("no value of type %s", typ))
}
