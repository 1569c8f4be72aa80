package gen

import (
	"testing"

	"github.com/twmb/avro"
)

// FuzzSchema claims that no text makes the generator panic, that what it
// accepts is formatted Go, and that the schema it registers parses.
func FuzzSchema(f *testing.F) {
	sources, err := readSources("../testdata/sample")
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range sources {
		f.Add([]byte(s.root.compact()))
	}
	f.Add([]byte(` {"type":"record","name":"a.A","fields":[{"name":"f","type":{"type":{"type":"int"}}}]} `))
	f.Fuzz(func(t *testing.T, text []byte) {
		root, err := parseFile(text)
		if err != nil || !root.defines() {
			return
		}
		m, err := newModel([]*source{{name: "a.avsc", root: root}})
		if err != nil {
			return
		}
		if _, err := emit("things", m); err != nil {
			t.Fatal(err)
		}
		for _, c := range m.contracts {
			if _, err := avro.Parse(c.schema); err != nil {
				t.Fatal(err)
			}
		}
	})
}
