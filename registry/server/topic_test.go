package server_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr"

	"github.com/waybillhq/waybill/broker/brokertest"
)

func TestRestartedServerKnowsAllItAnswered(t *testing.T) {
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	first := start(t, e, topic)
	first.want("PUT", "/config", `{"compatibility":"FORWARD"}`, 200, `{"compatibility":"FORWARD"}`)
	first.want("PUT", "/config/one", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`)
	for i := range 5 {
		first.ask("POST", "/subjects/one/versions", schema(fmt.Sprintf(`{"name":"f%d","type":"int"}`, i)))
	}
	first.ask("POST", "/subjects/two/versions", schema(fieldA))
	first.ask("DELETE", "/subjects/one/versions/2", "")
	first.ask("DELETE", "/subjects/two", "")
	first.ask("DELETE", "/subjects/two?permanent=true", "")
	before := first.everything()
	first.stop()

	second := start(t, e, topic)
	if after := second.everything(); after != before {
		t.Errorf("after restart\n%s\nwant\n%s", after, before)
	}
	second.want("POST", "/subjects/three/versions", schema(fieldB), 200, `{"id":7}`)
}

// everything is what a server knows.
func (r *registry) everything() string {
	r.Helper()
	out := ""
	for _, path := range []string{"/schemas?deleted=true", "/schemas", "/config", "/config/one", "/config/two"} {
		_, body := r.ask("GET", path, "")
		out += path + " " + body + "\n"
	}
	return out
}

func TestFranzGoClientFindsWhatItRegistered(t *testing.T) {
	r := fresh(t)
	ctx := t.Context()
	text := `{"type":"record","name":"T","fields":[]}`
	made, err := r.sr.CreateSchema(ctx, "one", sr.Schema{Schema: text})
	if err != nil || made.ID != 1 || made.Version != 1 {
		t.Fatalf("%+v, %v", made, err)
	}
	if found, err := r.sr.LookupSchema(sr.WithParams(ctx, sr.Normalize), "one", sr.Schema{Schema: text}); err != nil || found.ID != 1 {
		t.Errorf("lookup: %+v, %v", found, err)
	}
	if got, err := r.sr.SchemaTextByVersion(ctx, "one", -1); err != nil || got != text {
		t.Errorf("text: %s, %v", got, err)
	}
	if got, err := r.sr.SchemaTextByID(ctx, 1); err != nil || got != text {
		t.Errorf("text: %s, %v", got, err)
	}
	if got, err := r.sr.AllSchemas(ctx); err != nil || len(got) != 1 {
		t.Errorf("all: %v, %v", got, err)
	}
	if got := r.sr.SetCompatibility(ctx, sr.SetCompatibility{Level: sr.CompatFullTransitive}, "one")[0]; got.Err != nil {
		t.Error(got.Err)
	}
	if got := r.sr.Compatibility(ctx, "one")[0]; got.Err != nil || got.Level != sr.CompatFullTransitive {
		t.Errorf("level: %+v", got)
	}
	if got, err := r.sr.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), "one", -2, sr.Schema{Schema: `"int"`}); err != nil || got.Is || len(got.Messages) == 0 {
		t.Errorf("check: %+v, %v", got, err)
	}
	if got, err := r.sr.SupportedTypes(ctx); err != nil || !slices.Equal(got, []sr.SchemaType{sr.TypeAvro}) {
		t.Errorf("types: %v, %v", got, err)
	}
	if got, err := r.sr.DeleteSubject(ctx, "one", sr.SoftDelete); err != nil || !slices.Equal(got, []int{1}) {
		t.Errorf("delete: %v, %v", got, err)
	}
}

// put writes records as another registry would.
func put(t *testing.T, e *brokertest.Engine, topic string, pairs ...string) {
	t.Helper()
	client := e.Client(t, kgo.DefaultProduceTopic(topic), kgo.AllowAutoTopicCreation())
	for i := 0; i < len(pairs); i += 2 {
		r := &kgo.Record{Key: []byte(pairs[i])}
		if pairs[i+1] != "" {
			r.Value = []byte(pairs[i+1])
		}
		if err := client.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTopicOfAnotherRegistryIsReadAndFollowed(t *testing.T) {
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	start(t, e, topic).stop() // declares the topic
	put(t, e, topic,
		`{"keytype":"NOOP","magic":0}`, ``,
		`{"keytype":"CONFIG","subject":null,"magic":0}`, `{"compatibilityLevel":"FULL"}`,
		`{"keytype":"SCHEMA","subject":"one","version":1,"magic":1}`, `{"subject":"one","version":1,"id":10,"md5":"x","schema":"\"int\"","deleted":false}`,
		`{"version":2,"subject":"one","keytype":"SCHEMA","magic":1}`, `{"subject":"one","version":2,"id":11,"schema":"[\"null\",","deleted":false}`,
		`{"keytype":"SCHEMA","subject":"gone","version":1,"magic":1}`, `{"subject":"gone","version":1,"id":12,"schema":"\"long\"","deleted":false}`,
		`{"keytype":"DELETE_SUBJECT","subject":"gone","magic":0}`, `{"subject":"gone","version":1}`,
		`{"keytype":"SCHEMA","subject":"proto","version":1,"magic":1}`, `{"subject":"proto","version":1,"id":13,"schemaType":"PROTOBUF","schema":"message M {}","deleted":false}`,
		`{"keytype":"SCHEMA","subject":"twice","version":1,"magic":1}`, `{"subject":"twice","version":1,"id":10,"schema":"\"bytes\"","deleted":false}`,
		`{"keytype":"CLUSTER","magic":9}`, `{"x":1}`,
		`not json`, `not json`,
	)
	r := start(t, e, topic)
	r.want("GET", "/config", "", 200, `{"compatibilityLevel":"FULL"}`)
	r.want("GET", "/subjects", "", 200, `["one","proto","twice"]`)
	r.want("GET", "/subjects?deletedOnly=true", "", 200, `["gone"]`)
	r.want("GET", "/schemas/ids/10", "", 200, `{"schema":"\"int\""}`)
	r.want("GET", "/schemas/ids/11", "", 200, `{"schema":"[\"null\","}`)
	r.want("GET", "/schemas/ids/13", "", 200, `{"schemaType":"PROTOBUF","schema":"message M {}"}`)
	r.want("GET", "/subjects/twice/versions/1/schema", "", 200, `"bytes"`)
	r.refused("POST", "/subjects/one/versions", request(`"double"`), 409, 409) // version 2 is no schema
	r.want("POST", "/subjects/new/versions", request(`"string"`), 200, `{"id":14}`)

	// What the other writes while we run arrives too.
	put(t, e, topic, `{"keytype":"SCHEMA","subject":"late","version":1,"magic":1}`, `{"subject":"late","version":1,"id":20,"schema":"\"float\"","deleted":false}`)
	r.want("PUT", "/config/x", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`) // reads up to here
	r.want("GET", "/schemas/ids/20", "", 200, `{"schema":"\"float\""}`)
	r.want("POST", "/subjects/new2/versions", request(`"boolean"`), 200, `{"id":21}`)
}
