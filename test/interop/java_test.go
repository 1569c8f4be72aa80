package interop

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/broker/brokertest"
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

// java runs java/Interop.java, compiled in memory.
func (h *house) java(do string, o order) (all []fromJava) {
	h.Helper()
	command(h.T, "javac", "default-jdk-headless")
	o["brokers"], o["registry"], o["group"] = h.brokers(), h.url, brokertest.Group(h, "java")
	in, err := json.Marshal(o)
	if err != nil {
		h.Fatal(err)
	}
	out, failed := run(h.T, string(in), command(h.T, "java", "default-jdk-headless"), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-cp", part(h.T, "java")+"/*", "java/Interop.java", do)
	if failed {
		h.Fatalf("java %s: %s", do, out)
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

// One order each way with the value of every kind, in every codec Kafka has.
func TestJavaAndWaybillWriteTheSameBytes(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	topic := h.topic("rich")
	body := richBody(t)
	var v any
	if _, err := richSchema(t).Decode(body, &v); err != nil {
		t.Fatal(err)
	}
	text, err := richSchema(t).EncodeJSON(v, avro.TaggedUnions())
	if err != nil {
		t.Fatal(err)
	}
	h.java("produce", order{"topic": topic, "subject": topic + "-value", "schema": richText(t), "values": []json.RawMessage{text}})
	for _, rec := range h.read(topic, 5) {
		_, theirs, err := registry.SplitHeader(rec.Value)
		if err != nil || !bytes.Equal(theirs, body) {
			t.Errorf("%s: %v: Java writes\n%x\nwe write\n%x", rec.Headers[0].Value, err, theirs, body)
		}
		if _, got, err := registry.NewDecoder(h.client).DecodeAny(t.Context(), rec.Value); err != nil || string(got) != richJSON {
			t.Errorf("read %v\n%s", err, got)
		}
	}

	back := h.topic("back")
	id, err := h.client.RegisterText(t.Context(), back+"-value", richText(t))
	if err != nil {
		t.Fatal(err)
	}
	h.send(back, append(registry.AppendHeader(nil, id), body...))
	got := h.java("consume", order{"topic": back, "count": 1})
	if len(got) != 1 || !bytes.Equal(got[0].Body, body) {
		t.Fatalf("Java read %+v", got)
	}
	var said any
	if err := richSchema(t).DecodeJSON(got[0].Value, &said); err != nil {
		t.Fatal(err)
	}
	if again, err := richSchema(t).AppendEncode(nil, said); err != nil || !bytes.Equal(again, body) {
		t.Errorf("Java says %s, which is\n%x (%v), not\n%x", got[0].Value, again, err, body)
	}
}

func TestJavaReaderOfTheFirstVersionReadsTheSecond(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	topic := h.topic("notes")
	for _, schema := range []string{noteV1, noteV2} {
		if _, err := h.client.RegisterText(t.Context(), topic+"-value", schema); err != nil {
			t.Fatal(err)
		}
	}
	h.waybill(`{"text":"new","stars":5}`, "publish", topic, "--key", "k", "--tenant", "acme")
	got := h.java("consume", order{"topic": topic, "count": 1, "reader": noteV1})
	if len(got) != 1 || string(got[0].Value) != `{"text":"new"}` || got[0].Key != "k" || got[0].Headers["ce_tenant"] != "acme" {
		t.Errorf("%+v", got)
	}
}
