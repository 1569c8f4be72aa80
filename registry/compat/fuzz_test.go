package compat_test

import (
	"testing"
	"time"

	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/registry/compat"
)

func FuzzParseLegacy(f *testing.F) {
	for _, text := range []string{
		`"int"`, `{"type":"record","name":"T","fields":[{"name":"f","type":"string","default":null}]}`,
		`{"type":"record","name":"T","namespace":"n","fields":[{"name":"f","type":{"type":"enum","name":"E","symbols":["A"]},"default":7},{"name":"g","type":"n.E","default":{}}]}`,
		`{"type":"record","name":"L","fields":[{"name":"next","type":["L"],"default":"x"}]}`, `[`, `{"fields":[1]}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		began := time.Now()
		s, err := compat.ParseLegacy(&avro.SchemaCache{}, text)
		if err == nil {
			_ = compat.Check(compat.FullTransitive, s, []compat.Version{{Number: 1, Schema: s}})
		}
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("it took %s", took)
		}
	})
}
