package interop

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
)

// Every way of Python's serializer to find its schema.
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
	h.python(orders...)
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

// A GUID in a header instead of an id before the value: the serializer takes it
// from the answer to its registration, to its look-up, or from the latest
// version, and another client finds the schema by it.
func TestPythonsSerializerNamesTheSchemaByGUID(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	topic := h.topic("notes")
	var orders []order
	ways := []map[string]any{
		{"auto.register.schemas": true},
		{"auto.register.schemas": false},
		{"auto.register.schemas": false, "use.latest.version": true},
	}
	for _, way := range ways {
		orders = append(orders, order{"do": "produce", "topic": topic, "schema": noteV1, "values": []value{note("pão de queijo")}, "serializer": way, "guid_in_header": true})
	}
	orders = append(orders, order{"do": "consume", "topic": topic, "count": len(ways), "readers": []string{noteV1, noteV2}})
	for i, v := range h.values(h.python(orders...)) {
		guid := v.Headers["__value_schema_id"]
		if v.Value["text"] != "pão de queijo" || len(guid) != 34 || !strings.HasPrefix(guid, "01") {
			t.Errorf("%v: %+v", ways[i/2], v)
		}
	}
	for i, rec := range h.read(topic, len(ways)) {
		if string(rec.Value) != "\x1cpão de queijo" { // the body alone
			t.Errorf("%v: %x", ways[i], rec.Value)
		}
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
