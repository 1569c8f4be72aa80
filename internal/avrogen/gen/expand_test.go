package gen

import (
	"strings"
	"testing"

	"github.com/waybillhq/waybill/event"
)

// oneContract is the contract that file of the texts holds, by file name.
func oneContract(t *testing.T, file string, texts map[string]string) *contract {
	t.Helper()
	var sources []*source
	for _, name := range []string{"a.avsc", "b.avsc"} {
		root, err := parseNode([]byte(texts[name]))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, &source{name: name, root: root})
	}
	m, err := newModel(sources)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range m.contracts {
		if c.source.name == file {
			return c
		}
	}
	t.Fatalf("%s holds no contract", file)
	return nil
}

func TestBorrowedTypeKeepsItsNamespace(t *testing.T) {
	c := oneContract(t, "a.avsc", map[string]string{
		"a.avsc": `{"type":"record","name":"A","namespace":"one","topic":"t","source":"/a","key":"id","fields":[
			{"name":"id","type":"string"},
			{"name":"in","type":"two.Inner"},
			{"name":"x","type":"two.X"}]}`,
		"b.avsc": `{"type":"record","name":"B","namespace":"two","fields":[
			{"name":"x","type":{"type":"enum","name":"X","symbols":["U"],"default":"U"}},
			{"name":"in","type":{"type":"record","name":"Inner","fields":[{"name":"x","type":"X"}]}}]}`,
	})
	want := `{"name":"in","type":{"type":"record","name":"Inner","namespace":"two","fields":[` +
		`{"name":"x","type":{"type":"enum","name":"X","symbols":["U"],"default":"U"}}]}},` +
		`{"name":"x","type":"two.X"}`
	if !strings.Contains(c.schema, want) {
		t.Errorf("schema %s\nlacks %s", c.schema, want)
	}
	if _, err := event.NewContract(c.topic, c.uri, c.schema); err != nil {
		t.Error(err)
	}
}

func TestTypeMayBeUsedBeforeItIsDefined(t *testing.T) {
	c := oneContract(t, "a.avsc", map[string]string{
		"a.avsc": `{"type":"record","name":"A","topic":"t","source":"/a","key":"id","fields":[
			{"name":"id","type":"string"},
			{"name":"x","type":"X"},
			{"name":"y","type":{"type":"enum","name":"X","symbols":["U"],"default":"U"}}]}`,
		"b.avsc": `{"type":"record","name":"B","fields":[]}`,
	})
	want := `{"name":"x","type":{"type":"enum","name":"X","symbols":["U"],"default":"U"}},{"name":"y","type":"X"}`
	if !strings.Contains(c.schema, want) {
		t.Errorf("schema %s\nlacks %s", c.schema, want)
	}
}

func TestDocsBeginWithTheName(t *testing.T) {
	for _, c := range []struct{ doc, want string }{
		{"A thing.", "T is a thing."},
		{"API of a thing.", "T is API of a thing."},
		{"T stands.", "T stands."},
		{" Two\n lines. ", "T is two lines."},
		{"x", "T is x"},
		{"  ", ""},
	} {
		if got := sentence("T", "is", c.doc); got != c.want {
			t.Errorf("%q: got %q, want %q", c.doc, got, c.want)
		}
	}
}

func TestGoNames(t *testing.T) {
	for avro, want := range map[string]string{
		"order_id": "OrderID", "lat": "Lat", "etaAtCep": "ETAAtCEP", "HTTP_API": "HTTPAPI",
		"PICKED_UP": "PickedUp", "_x__y": "XY", "url": "URL", "ids": "IDs", "paid": "Paid",
	} {
		if got := goName(avro); got != want {
			t.Errorf("%s: got %s, want %s", avro, got, want)
		}
	}
	for name, want := range map[string]string{"HTTPCall": "httpCall", "OrderCreated": "orderCreated", "A": "a", "ID": "id"} {
		if got := unexported(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
