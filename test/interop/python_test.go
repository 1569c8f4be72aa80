package interop

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/registry/server"
)

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
		o["init_seconds"] = 3 // it would ask again for as long as it may
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

// The claims are in admin.py. The built-in broker deletes no records.
func TestPythonAdministers(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	out, failed := h.try("admin.py", order{"topic": brokertest.Topic(t, "made"), "kafka": brokertest.Kafka()})
	if failed || !strings.HasSuffix(out, "every step\n") {
		t.Errorf("%s", out)
	}
}
