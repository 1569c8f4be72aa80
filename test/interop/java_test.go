package interop

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
)

// fromJava is a record as java/Interop.java shows it.
type fromJava struct {
	Key     string            `json:"key"`
	Headers map[string]string `json:"headers"`
	Value   json.RawMessage   `json:"value"` // in Avro's JSON
	Body    []byte            `json:"body"`  // in Avro, as Java writes it
}

// java runs java/Interop.java, which java itself compiles.
func (h *house) java(orders ...order) (all []fromJava) {
	h.Helper()
	command(h.T, "javac", "default-jdk-headless")
	out, failed := run(h.T, h.told(orders), command(h.T, "java", "default-jdk-headless"),
		"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", part(h.T, "java")+"/*", "java/Interop.java")
	if failed {
		h.Fatalf("Interop.java: %s", out)
	}
	for line := range strings.Lines(out) {
		var r fromJava
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			h.Fatalf("%s: %v", out, err)
		}
		all = append(all, r)
	}
	return all
}

// The value of every kind goes both ways, and in every codec that Kafka has;
// Java's reader of the first version reads the second.
func TestJavaAndWaybillReadEachOther(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	there, back, notes := h.topic("there"), h.topic("back"), h.topic("notes")
	h.publishRich(back)
	for _, schema := range []string{noteV1, noteV2} {
		if _, err := h.client.RegisterText(t.Context(), notes+"-value", schema); err != nil {
			t.Fatal(err)
		}
	}
	h.waybill(`{"text":"new","stars":5}`, "publish", notes, "--key", "k", "--tenant", "acme")

	got := h.java(
		order{"do": "produce", "topic": there, "subject": there + "-value", "schema": richText(t), "values": []json.RawMessage{richAvroJSON(t)}},
		order{"do": "consume", "topic": back, "count": 1},
		order{"do": "consume", "topic": notes, "count": 1, "reader": noteV1},
	)
	if len(got) != 2 {
		t.Fatalf("Java read %+v", got)
	}
	for _, rec := range h.read(there, 5) {
		h.holdsRich(rec)
	}
	body := richBody(t)
	if !bytes.Equal(got[0].Body, body) {
		t.Errorf("Java writes what it read as\n%x, not\n%x", got[0].Body, body)
	}
	var said any
	if err := richSchema(t).DecodeJSON(got[0].Value, &said); err != nil {
		t.Fatal(err)
	}
	if again, err := richSchema(t).AppendEncode(nil, said); err != nil || !bytes.Equal(again, body) {
		t.Errorf("Java says %s, which is\n%x (%v), not\n%x", got[0].Value, again, err, body)
	}
	if n := got[1]; string(n.Value) != `{"text":"new"}` || n.Key != "k" || n.Headers["ce_tenant"] != "acme" {
		t.Errorf("the second version as a reader of the first sees it: %+v", n)
	}
}

// publishRich puts the value of every kind on a topic.
func (h *house) publishRich(topic string) {
	h.Helper()
	id, err := h.client.RegisterText(h.Context(), topic+"-value", richText(h.T))
	if err != nil {
		h.Fatal(err)
	}
	rec := &kgo.Record{Topic: topic, Value: append(registry.AppendHeader(nil, id), richBody(h.T)...)}
	if err := h.kafka.ProduceSync(h.Context(), rec).FirstErr(); err != nil {
		h.Fatal(err)
	}
}

// holdsRich wants the value of every kind in a record, in our own bytes.
func (h *house) holdsRich(rec *kgo.Record) {
	h.Helper()
	_, theirs, err := registry.SplitHeader(rec.Value)
	if ours := richBody(h.T); err != nil || !bytes.Equal(theirs, ours) {
		h.Errorf("%v: they write\n%x\nwe write\n%x", err, theirs, ours)
	}
	if _, text, err := registry.NewDecoder(h.client).DecodeAny(h.Context(), rec.Value); err != nil || string(text) != richJSON {
		h.Errorf("read %v\n%s\nwant\n%s", err, text, richJSON)
	}
}

// richAvroJSON is the value of every kind as Avro's JSON names it.
func richAvroJSON(t *testing.T) []byte {
	t.Helper()
	var v any
	if _, err := richSchema(t).Decode(richBody(t), &v); err != nil {
		t.Fatal(err)
	}
	text, err := richSchema(t).EncodeJSON(v, avro.TaggedUnions())
	if err != nil {
		t.Fatal(err)
	}
	return text
}
