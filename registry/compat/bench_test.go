package compat_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/registry/compat"
)

// BenchmarkCheck compares a schema of twenty fields with a thousand versions,
// both ways.
func BenchmarkCheck(b *testing.B) {
	var fields []string
	for i := range 20 {
		fields = append(fields, fmt.Sprintf(`{"name":"f%d","type":["null","string"],"default":null}`, i))
	}
	var versions []compat.Version
	for i := range 1000 {
		s := avro.MustParse(rec(strings.Join(fields, ",")))
		versions = append(versions, compat.Version{Number: i + 1, Schema: s, Reader: compat.Strict(s)})
	}
	later := avro.MustParse(rec(strings.Join(fields, ",") + `,{"name":"g","type":"int","default":0}`))
	for b.Loop() {
		if got := compat.Check(compat.FullTransitive, later, versions); len(got) > 0 {
			b.Fatal(got)
		}
	}
}
