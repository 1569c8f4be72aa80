package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

// opened is a value of k in the wire format.
func opened(t testing.TB, c *registry.Client, k *event.Contract, v map[string]any) []byte {
	t.Helper()
	id, err := c.RegisterText(t.Context(), k.Subject(), k.Text)
	if err != nil {
		t.Fatal(err)
	}
	value, err := k.Schema.AppendEncode(registry.AppendHeader(nil, id), v)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestReaderSeesItsOwnShapeOfWhatAnyVersionWrote(t *testing.T) {
	url, _ := serve(t)
	c := client(t, url)
	d := registry.NewDecoder(c)
	earlier, later := contract(t, fieldA), contract(t, fieldA+","+fieldB)
	var got struct {
		A string `avro:"a"`
		B int    `avro:"b"`
	}
	if err := d.Decode(t.Context(), opened(t, c, earlier, map[string]any{"a": "x"}), &got, later.Schema); err != nil || got.A != "x" || got.B != 7 {
		t.Errorf("old value, new reader: %+v, %v", got, err)
	}
	var old struct {
		A string `avro:"a"`
	}
	if err := d.Decode(t.Context(), opened(t, c, later, map[string]any{"a": "y", "b": 1}), &old, earlier.Schema); err != nil || old.A != "y" {
		t.Errorf("new value, old reader: %+v, %v", old, err)
	}
	var v any
	if err := d.Decode(t.Context(), opened(t, c, later, map[string]any{"a": "y", "b": 1}), &v, nil); err != nil {
		t.Error(err)
	}
}

func TestManyReadersOfOneNewSchemaAskOnce(t *testing.T) {
	url, asked := serve(t)
	c := client(t, url)
	k := contract(t, fieldA)
	value := opened(t, c, k, map[string]any{"a": "x"})
	d := registry.NewDecoder(c)
	before := asked.Load()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			var got struct {
				A string `avro:"a"`
			}
			for range 20 {
				if err := d.Decode(t.Context(), value, &got, k.Schema); err != nil || got.A != "x" {
					t.Errorf("%+v, %v", got, err)
				}
			}
		})
	}
	wg.Wait()
	if n := asked.Load() - before; n != 1 {
		t.Errorf("asked %d times", n)
	}
}

func TestOneReaderGivingUpDoesNotFailTheOthers(t *testing.T) {
	arrived, leave := make(chan struct{}, 2), make(chan struct{})
	first := true
	var mu sync.Mutex
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		hang := first
		first = false
		mu.Unlock()
		arrived <- struct{}{}
		if hang {
			<-leave
			<-r.Context().Done()
			return
		}
		_, _ = w.Write([]byte(`{"schema":"\"string\""}`))
	}))
	defer web.Close()
	d := registry.NewDecoder(client(t, web.URL))
	value := append(registry.AppendHeader(nil, 1), 2, 'x')
	giving, giveUp := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		var s string
		if err := d.Decode(giving, value, &s, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("gave up: %v", err)
		}
	})
	<-arrived
	wg.Go(func() {
		var s string
		if err := d.Decode(t.Context(), value, &s, nil); err != nil || s != "x" {
			t.Errorf("stayed: %q, %v", s, err)
		}
	})
	close(leave)
	giveUp()
	wg.Wait()
}

func TestFaultsOfTheEventAreTypedAndNotUnavailable(t *testing.T) {
	url, _ := serve(t)
	c := client(t, url)
	k := contract(t, fieldA)
	good := opened(t, c, k, map[string]any{"a": "hello"})
	other := avro.MustParse(`{"type":"record","name":"Opened","namespace":"bank","fields":[{"name":"a","type":"long"}]}`)
	var incompatible *avro.CompatibilityError
	cases := []struct {
		name   string
		value  []byte
		reader *avro.Schema
		is     func(error) bool
	}{
		{"empty", nil, nil, func(err error) bool { return errors.Is(err, registry.ErrNotWireFormat) }},
		{"JSON", []byte(`{"a":"hello"}`), nil, func(err error) bool { return errors.Is(err, registry.ErrNotWireFormat) }},
		{"unknown id", registry.AppendHeader(nil, 4711), nil, func(err error) bool { return errors.Is(err, registry.ErrUnknownSchema) }},
		{"cut short", good[:len(good)-1], nil, func(err error) bool { return errors.Is(err, registry.ErrMalformed) }},
		{"header alone", good[:5], k.Schema, func(err error) bool { return errors.Is(err, registry.ErrMalformed) }},
		{"too long", append(good[:len(good):len(good)], 0), nil, func(err error) bool { return errors.Is(err, registry.ErrMalformed) }},
		{"another reader", good, other, func(err error) bool { return errors.As(err, &incompatible) }},
	}
	d := registry.NewDecoder(c)
	for _, x := range cases {
		var v any
		err := d.Decode(t.Context(), x.value, &v, x.reader)
		if !x.is(err) || errors.Is(err, registry.ErrUnavailable) {
			t.Errorf("%s: %v", x.name, err)
		}
		if x.reader == nil {
			if _, _, err := d.DecodeAny(t.Context(), x.value); !x.is(err) {
				t.Errorf("%s to JSON: %v", x.name, err)
			}
		}
	}
}

func TestSchemaWithReferencesIsRead(t *testing.T) {
	url, _ := serve(t)
	a, c := admin(t, url), client(t, url)
	money, err := a.CreateSchema(t.Context(), "money", sr.Schema{Schema: `{"type":"record","name":"Money","namespace":"bank","fields":[{"name":"n","type":"long"}]}`})
	if err != nil {
		t.Fatal(err)
	}
	paid, err := a.CreateSchema(t.Context(), "paid", sr.Schema{
		Schema:     `{"type":"record","name":"Paid","namespace":"bank","fields":[{"name":"m","type":"Money"}]}`,
		References: []sr.SchemaReference{{Name: "bank.Money", Subject: "money", Version: money.Version}},
	})
	if err != nil {
		t.Fatal(err)
	}
	info, text, err := registry.NewDecoder(c).DecodeAny(t.Context(), append(registry.AppendHeader(nil, paid.ID), 4))
	if err != nil || info.Name != "bank.Paid" || info.ID != paid.ID || string(text) != `{"m":{"n":2}}` {
		t.Errorf("%+v %s %v", info, text, err)
	}
}

func TestMessageOfAPersonIsEncodedAndReadBack(t *testing.T) {
	url, _ := serve(t)
	c := client(t, url)
	schema := `{"type":"record","name":"Note","namespace":"bank","fields":[
		{"name":"text","type":"string"},
		{"name":"count","type":"long","default":3},
		{"name":"raw","type":"bytes","default":""},
		{"name":"at","type":["null",{"type":"long","logicalType":"timestamp-micros"}],"default":null},
		{"name":"day","type":["null",{"type":"int","logicalType":"date"}],"default":null},
		{"name":"in","type":["null",{"type":"record","name":"In","fields":[{"name":"q","type":"int"}]}],"default":null},
		{"name":"list","type":{"type":"array","items":"In"},"default":[]},
		{"name":"either","type":["null","string","In"],"default":null}]}`
	if _, err := c.RegisterText(t.Context(), "notes", schema); err != nil {
		t.Fatal(err)
	}
	const rest = `"at":null,"count":3,"day":null,"either":null,"in":null,"list":[],"raw":""`
	good := map[string]string{
		`{"text":"hi"}`:                                       `{` + rest + `,"text":"hi"}`,
		`{"text":"hi","count":9007199254740993}`:              `{"count":9007199254740993}`,
		`{"text":"hi","raw":"\u00ff"}`:                        `{"raw":"\u00ff"}`,
		`{"text":"hi","at":"2026-01-02T03:04:05.000001Z"}`:    `{"at":1767323045000001}`,
		`{"text":"hi","at":1767323045000001}`:                 `{"at":1767323045000001}`,
		`{"text":"hi","at":{"long":"2026-01-02T03:04:05Z"}}`:  `{"at":1767323045000000}`,
		`{"text":"hi","day":"1969-12-31"}`:                    `{"day":-1}`,
		`{"text":"hi","in":{"q":2}}`:                          `{"in":{"q":2}}`,
		`{"text":"hi","in":{"In":{"q":2}}}`:                   `{"in":{"q":2}}`,
		`{"text":"hi","in":{"bank.In":{"q":2}}}`:              `{"in":{"q":2}}`,
		`{"text":"hi","list":[{"q":1},{"q":2}],"either":"x"}`: `{"either":"x","list":[{"q":1},{"q":2}]}`,
		`{"text":"hi","either":{"bank.In":{"q":2}}}`:          `{"either":{"q":2}}`,
	}
	d := registry.NewDecoder(c)
	for in, want := range good {
		value, err := c.EncodeJSON(t.Context(), "notes", []byte(in))
		if err != nil {
			t.Errorf("%s: %v", in, err)
			continue
		}
		_, out, err := d.DecodeAny(t.Context(), value)
		if err != nil {
			t.Errorf("%s: %v", in, err)
		}
		var got, part map[string]json.RawMessage
		if json.Unmarshal(out, &got) != nil || json.Unmarshal([]byte(want), &part) != nil {
			t.Fatalf("%s and %s", out, want)
		}
		for k, v := range part {
			if string(got[k]) != string(v) {
				t.Errorf("%s: %s is %s, want %s", in, k, got[k], v)
			}
		}
	}
	bad := map[string]string{
		`{}`:                                   "text",
		`{"text":7}`:                           "text",
		`{"text":"hi","txt":1}`:                "txt",
		`{"text":"hi","in":{"q":"x"}}`:         "in.q",
		`{"text":"hi","in":{"q":1,"z":1}}`:     "in.z",
		`{"text":"hi","list":[{"q":1,"z":1}]}`: "list.0.z",
		`{"text":"hi","at":"yesterday"}`:       "at",
		`{"text":"hi","count":1.5}`:            "count",
		`[]`:                                   "Note",
		`{"text":`:                             "JSON",
		`{"text":"hi"}{"text":"hi"}`:           "JSON",
		``:                                     "JSON",
	}
	for in, want := range bad {
		_, err := c.EncodeJSON(t.Context(), "notes", []byte(in))
		if !errors.Is(err, registry.ErrMalformed) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want it to name %s", in, err, want)
		}
	}
}

func TestMissingSubjectShowsHowToRegister(t *testing.T) {
	url, _ := serve(t)
	_, err := client(t, url).EncodeJSON(t.Context(), "it's new", []byte(`{}`))
	var missing *registry.UnknownSubjectError
	if !errors.As(err, &missing) || missing.Subject != "it's new" {
		t.Fatal(err)
	}
	for _, want := range []string{"curl -X POST", url + "/subjects/it%27s%20new/versions", `"it's new"`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("no curl to try the command with")
	}
	_, command, _ := strings.Cut(missing.Error(), "\n\n")
	if out, err := exec.CommandContext(t.Context(), "sh", "-c", command).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := client(t, url).EncodeJSON(t.Context(), "it's new", []byte(`{"text":"hi"}`)); err != nil {
		t.Errorf("after the command shown: %v", err)
	}
}
