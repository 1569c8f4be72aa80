package interop

import (
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
)

// order is what python/client.py is told; see there.
type order map[string]any

// value is a record as an order names it and as client.py shows it.
type value struct {
	Key     string            `json:"key,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Value   map[string]any    `json:"value"`

	// Of an order that may be refused: with which status, 0 if it was not, -1
	// if it was by the client itself.
	Refused int    `json:"refused,omitempty"`
	Says    string `json:"says,omitempty"`
}

// try runs a script in the environment with Confluent's client.
func (h *house) try(script string, orders ...order) (out string, failed bool) {
	h.Helper()
	return run(h.T, h.told(orders), filepath.Join(part(h.T, "python"), "bin", "python"), filepath.Join("python", script))
}

// told is what a client reads: the orders, with what all of them need.
func (h *house) told(orders []order) string {
	h.Helper()
	for _, o := range orders {
		o["brokers"], o["registry"] = h.brokers(), h.url
		if o["group"] == nil {
			o["group"] = brokertest.Group(h, "foreign")
		}
	}
	in, err := json.Marshal(orders)
	if err != nil {
		h.Fatal(err)
	}
	return string(in)
}

// python is client.py for orders that must succeed.
func (h *house) python(orders ...order) string {
	h.Helper()
	out, failed := h.try("client.py", orders...)
	if failed {
		h.Fatalf("client.py: %s", out)
	}
	return out
}

// values are the records that client.py shows.
func (h *house) values(out string) (all []value) {
	h.Helper()
	for line := range strings.Lines(out) {
		var v value
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			h.Fatalf("%s: %v", out, err)
		}
		all = append(all, v)
	}
	return all
}

const (
	noteV1 = `{"type":"record","name":"Note","namespace":"interop","fields":[{"name":"text","type":"string"}]}`
	noteV2 = `{"type":"record","name":"Note","namespace":"interop","fields":[{"name":"text","type":"string"},{"name":"stars","type":"int","default":3}]}`
	// noteV3 may not follow: its new field has no default.
	noteV3 = `{"type":"record","name":"Note","namespace":"interop","fields":[{"name":"text","type":"string"},{"name":"author","type":"string"}]}`
)

func note(text string) value { return value{Key: "k", Value: map[string]any{"text": text}} }

// What librdkafka sends, in every codec it has, our command line shows.
func TestPythonProducesAndWaybillReads(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	topic := h.topic("notes")
	codecs := []string{"none", "gzip", "snappy", "lz4", "zstd"}
	h.python(order{"do": "produce", "topic": topic, "schema": noteV1, "values": []value{note("hello")}, "codecs": codecs})
	out := h.waybill("", "tail", topic, "--json", "--count", "5")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for i, line := range lines {
		var shown struct {
			Key    string `json:"key"`
			Schema int    `json:"schema_id"`
			Body   struct{ Text string }
		}
		if err := json.Unmarshal([]byte(line), &shown); err != nil || shown.Key != "k" || shown.Schema != 1 || shown.Body.Text != "hello" {
			t.Errorf("%s: %s (%v)", codecs[i], line, err)
		}
	}
	if len(lines) != len(codecs) {
		t.Errorf("%d lines", len(lines))
	}
	// Without a word about subjects it registers under the topic's name.
	if subjects, err := h.client.Subjects(t.Context(), topic); err != nil || !slices.Equal(subjects, []string{topic + "-value"}) {
		t.Errorf("subjects %v, %v", subjects, err)
	}
}

func TestWaybillPublishesAndPythonReads(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	topic := h.topic("notes")
	if _, err := h.client.RegisterText(t.Context(), topic+"-value", noteV2); err != nil {
		t.Fatal(err)
	}
	h.waybill(`{"text":"one"}`+"\n"+`{"text":"two","stars":5}`+"\n", "publish", topic, "--key", "k", "--tenant", "acme")
	group := brokertest.Group(t, "python")
	got := h.values(h.python(order{"do": "consume", "topic": topic, "count": 2, "group": group}))
	if len(got) != 2 || got[0].Value["text"] != "one" || got[0].Value["stars"] != 3.0 || got[1].Value["stars"] != 5.0 ||
		got[0].Key != "k" || got[0].Headers["ce_tenant"] != "acme" || got[0].Headers["ce_type"] != "value" {
		t.Errorf("%+v", got)
	}
	// What a group of librdkafka's committed, our commands see.
	if out := h.python(order{"do": "committed", "topic": topic, "group": group}); !strings.Contains(out, `"offset": 2`) {
		t.Errorf("committed: %s", out)
	}
	if out := h.waybill("", "lag", group, "--json"); !strings.Contains(out, topic) {
		t.Errorf("lag: %s", out)
	}
}

func TestPythonReadersOfEveryVersionReadEveryVersion(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	topic := h.topic("notes")
	later := note("second")
	later.Value["stars"] = 4
	out := h.python(
		order{"do": "produce", "topic": topic, "schema": noteV1, "values": []value{note("first")}},
		order{"do": "produce", "topic": topic, "schema": noteV2, "values": []value{later}},
		order{"do": "consume", "topic": topic, "count": 2, "readers": []any{noteV1, noteV2, nil}},
		order{"do": "produce", "topic": topic, "schema": noteV3, "values": []value{note("third")}, "refusable": true},
	)
	got := h.values(out)
	if len(got) != 7 || got[6].Refused != http.StatusConflict || !strings.Contains(got[6].Says, "author") {
		t.Fatalf("an incompatible schema: %s", out)
	}
	for i, want := range []any{nil, 3.0, nil, nil, 4.0, 4.0} { // stars; nil: there are none
		if got[i].Value["text"] != []any{"first", "second"}[i/3] || got[i].Value["stars"] != want {
			t.Errorf("%d: %+v", i, got[i])
		}
	}
}

func TestPythonAndWaybillWriteTheSameBytes(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	there, back := h.topic("there"), h.topic("back")
	h.publishRich(back)
	h.python(
		order{"do": "produce", "topic": there, "schema": richText(t), "rich": true},
		order{"do": "consume", "topic": back, "count": 1, "rich": true}, // and compares it with its own
	)
	h.holdsRich(h.read(there, 1)[0])
}

// Every way of Python's serializer to find its schema. A GUID in a header
// instead of an id before the value is not for us: no answer of the registry's
// to a serializer has one, and no reader of ours would look there.
func TestPythonsSerializerFindsItsSchema(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	topic := h.topic("notes")
	id, err := h.client.RegisterText(t.Context(), topic+"-value", noteV1)
	if err != nil {
		t.Fatal(err)
	}
	ways := []map[string]any{
		{"auto.register.schemas": false},
		{"auto.register.schemas": false, "use.latest.version": true},
		{"auto.register.schemas": false, "use.schema.id": id},
		{"normalize.schemas": true},
		{"subject.name.strategy.type": "TOPIC"},
		{"subject.name.strategy.type": "RECORD"},
		{"subject.name.strategy.type": "TOPIC_RECORD"},
	}
	var orders []order
	for _, way := range ways {
		orders = append(orders, order{"do": "produce", "topic": topic, "schema": noteV1, "values": []value{note("x")}, "serializer": way})
	}
	orders = append(orders, order{"do": "produce", "topic": topic, "schema": noteV1, "values": []value{note("x")}, "guid_in_header": true, "refusable": true})
	got := h.values(h.python(orders...))
	if len(got) != 1 || got[0].Refused != -1 || !strings.Contains(got[0].Says, "GUID") {
		t.Errorf("a GUID in a header: %+v", got)
	}
	for i, rec := range h.read(topic, len(ways)) {
		if written, _, err := registry.SplitHeader(rec.Value); err != nil || written != id { // one schema, one id, whatever the subject
			t.Errorf("%v: written with schema %d, %v", ways[i], written, err)
		}
	}
	want := []string{"interop.Note", topic + "-interop.Note", topic + "-value"}
	subjects, err := h.client.Subjects(t.Context(), "")
	if slices.Sort(want); err != nil || !slices.Equal(subjects, want) {
		t.Errorf("subjects %v, %v", subjects, err)
	}
}

// The built-in broker offers no transactions and says so.
func TestPythonWritesInTransactions(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	topic := h.topic("notes")
	o := order{
		"do": "produce", "topic": topic, "schema": noteV1, "values": []value{note("a"), note("b")},
		"conf": map[string]any{"transactional.id": topic},
	}
	if !h.engine.Capabilities.Transactions {
		if out, failed := h.try("client.py", o); !failed || !strings.Contains(out, "UNSUPPORTED_VERSION") {
			t.Errorf("on a broker without transactions: %s", out)
		}
		return
	}
	got := h.values(h.python(o, order{"do": "consume", "topic": topic, "count": 2}))
	if len(got) != 2 || got[1].Value["text"] != "b" || len(h.read(topic, 2)) != 2 {
		t.Errorf("%+v", got)
	}
}

func TestPythonSaysWhoItIs(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{Users: map[string]string{"ann": "s:e cret"}, Tokens: []string{"token"}})
	topic := h.topic("notes")
	var orders []order
	for _, conf := range []map[string]any{
		{"basic.auth.user.info": "ann:s:e cret"},
		{
			"bearer.auth.credentials.source": "STATIC_TOKEN", "bearer.auth.token": "token",
			"bearer.auth.logical.cluster": "lsrc-1", "bearer.auth.identity.pool.id": "pool-1",
		},
		{},
		{"basic.auth.user.info": "ann:wrong"},
	} {
		orders = append(orders, order{
			"do": "produce", "topic": topic, "schema": noteV1, "values": []value{note("x")},
			"registry_conf": conf, "refusable": true,
		})
	}
	got := h.values(h.python(orders...))
	for i, want := range []int{0, 0, http.StatusUnauthorized, http.StatusUnauthorized} {
		if len(got) != 4 || got[i].Refused != want {
			t.Fatalf("%d: %+v", i, got)
		}
	}
}

// The claims about each call are in calls.py.
func TestEveryCallOfPythonsRegistryClient(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	out, failed := h.try("calls.py", order{})
	if failed || !strings.HasSuffix(out, "every call\n") {
		t.Errorf("%s", out)
	}
}

// The claims are in admin.py. The built-in broker deletes no records.
func TestPythonAdministers(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	out, failed := h.try("admin.py", order{"topic": brokertest.Topic(t, "made"), "kafka": brokertest.Kafka()})
	if failed || !strings.HasSuffix(out, "every step\n") {
		t.Errorf("%s", out)
	}
}
