package catalogue

import (
	"encoding/json"
	"io"
	"testing"

	"github.com/twmb/avro"
)

// FuzzEvent claims that whatever is registered can be shown, as a page and as a
// document whose references lead somewhere.
func FuzzEvent(f *testing.F) {
	f.Add("t", `{"type":"record","name":"A","doc":"<b>","fields":[{"name":"n","type":["null","A"],"default":null}]}`, "pt-BR")
	f.Add("t/1 ~", `{"type":"enum","name":"n.E","symbols":["A"]}`, "en;q=1,*")
	f.Add("", `"int"`, "")
	f.Fuzz(func(t *testing.T, topic, text, accept string) {
		s, err := avro.Parse(text)
		if err != nil {
			return
		}
		c := &Catalogue{Title: topic}
		for range 2 { // two of one name
			c.add(topic, describe(topic+"-"+typeOf(s), typeOf(s), s, text))
		}
		c.sorted()
		if err := c.Page(io.Discard, Language(accept)); err != nil {
			t.Error(err)
		}
		doc, err := c.AsyncAPI("1", "")
		if err != nil || !json.Valid(doc) {
			t.Fatalf("%v %s", err, doc)
		}
		references(t, doc)
	})
}
