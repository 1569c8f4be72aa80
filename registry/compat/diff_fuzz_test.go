package compat_test

import (
	"testing"
	"time"

	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/registry/compat"
)

// FuzzDiff claims that two schemas of whatever kind are compared in bounded
// time, and that one does not differ from itself.
func FuzzDiff(f *testing.F) {
	texts := []string{
		`"int"`, `["null","string"]`, `{"type":"enum","name":"E","symbols":["A"],"default":"A"}`,
		`{"type":"record","name":"T","fields":[{"name":"n","type":["null","T"],"default":null}]}`,
		`{"type":"record","name":"n.T","doc":"d","fields":[{"name":"l","type":{"type":"array","items":{"type":"map","values":"bytes"}}},{"name":"d","type":{"type":"bytes","logicalType":"decimal","precision":4,"scale":2}}]}`,
	}
	for _, a := range texts {
		for _, b := range texts {
			f.Add(a, b)
		}
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		x, errX := avro.Parse(a)
		y, errY := avro.Parse(b)
		if errX != nil || errY != nil {
			return
		}
		began := time.Now()
		if d := compat.Diff(x, x); len(d) != 0 {
			t.Errorf("%s differs from itself: %v", a, d)
		}
		_ = compat.Diff(x, y)
		_ = compat.Fields(x)
		_ = compat.Readers(x, y)
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
