package registry_test

import (
	"fmt"
	"testing"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

func BenchmarkDecode(b *testing.B) {
	url, _ := serve(b)
	c := client(b, url)
	k, reader := contract(b, fieldA), contract(b, fieldA+","+fieldB)
	value := opened(b, c, k, map[string]any{"a": "hello"})
	d := registry.NewDecoder(c)
	b.ReportAllocs()
	for b.Loop() {
		var got struct {
			A string `avro:"a"`
			B int    `avro:"b"`
		}
		if err := d.Decode(b.Context(), value, &got, reader.Schema); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRegister is what registering costs a program that starts, with
// contracts new to the registry and with known ones.
func BenchmarkRegister(b *testing.B) {
	url, _ := serve(b)
	n := 0
	contracts := func() []*event.Contract {
		n++
		var out []*event.Contract
		for i := range 15 {
			k, err := event.NewContract("bank.events", "/bank", fmt.Sprintf(`{"type":"record","name":"E%dx%d","namespace":"bank","fields":[%s]}`, n, i, fieldA))
			if err != nil {
				b.Fatal(err)
			}
			out = append(out, k)
		}
		return out
	}
	for _, fresh := range []bool{true, false} {
		b.Run(fmt.Sprintf("15 contracts/new=%t", fresh), func(b *testing.B) {
			c, known := client(b, url), contracts()
			if _, err := c.Register(b.Context(), "FULL_TRANSITIVE", known...); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if fresh {
					known = contracts()
				}
				if _, err := c.Register(b.Context(), "FULL_TRANSITIVE", known...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
