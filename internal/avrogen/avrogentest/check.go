package avrogentest

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/twmb/avro"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/internal/avrogen/gen"
)

// CheckRoundTrip claims that any value of contract c decodes to what was
// encoded, leaving no byte over. newData is the New of the package.
func CheckRoundTrip(t *testing.T, c *event.Contract, newData func(string) (event.Data, bool)) {
	t.Helper()
	ptr, ok := newData(c.Type)
	if !ok {
		t.Fatalf("New does not know %s", c.Type)
	}
	if ptr.EventContract() != c {
		t.Fatalf("New(%s) is a %T", c.Type, ptr)
	}
	rapid.Check(t, func(t *rapid.T) {
		want := Event(t, c, ptr)
		text, err := c.Schema.Encode(want)
		if err != nil {
			t.Fatalf("encode: %v", err)
		}
		got, _ := newData(c.Type)
		rest, err := c.Schema.Decode(text, got)
		if err != nil || len(rest) > 0 {
			t.Fatalf("decode: %v, %d bytes over", err, len(rest))
		}
		if !reflect.DeepEqual(want, got) {
			t.Fatalf("encoded %+v, decoded %+v", want, got)
		}
	})
}

// CheckEnumDefaults claims that every enum of contract c has a default, which
// is what a reader falls back to when a writer knows a newer symbol.
func CheckEnumDefaults(t *testing.T, c *event.Contract) {
	t.Helper()
	d := drawer{defs: map[string]avro.SchemaNode{}}
	d.learn(*c.Schema.Root())
	for name, n := range d.defs {
		if n.Type == "enum" && !n.HasEnumDefault {
			t.Errorf("%s: enum %s has no default", c.Type, name)
		}
	}
}

// CheckUpToDate claims that the Go files in dir are what its schemas generate.
func CheckUpToDate(t *testing.T, dir string) {
	t.Helper()
	want, err := gen.Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s is not what its schema generates (%v): run go generate", name, err)
		}
	}
	paths, err := filepath.Glob(filepath.Join(dir, "*_gen.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if _, ok := want[filepath.Base(path)]; !ok {
			t.Errorf("%s has no schema: run go generate", path)
		}
	}
}
