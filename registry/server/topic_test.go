package server_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker/brokertest"
)

func TestRestartedServerKnowsAllItAnswered(t *testing.T) {
	t.Parallel()
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
	t.Parallel()
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
	broken := request(`["null",`)
	r.want("POST", "/subjects/one", broken, 200, `{"subject":"one","version":2,"id":11,"schema":"[\"null\","}`)
	r.want("POST", "/subjects/one/versions?normalize=true", broken, 200, `{"id":11}`) // is there already
	r.refused("POST", "/subjects/three/versions", broken, 422, 42201)
	r.refused("POST", "/subjects/one/versions", request(`"double"`), 409, 409) // version 2 is no schema
	r.want("POST", "/subjects/new/versions", request(`"string"`), 200, `{"id":14}`)

	// What the other writes while we run arrives too.
	put(t, e, topic, `{"keytype":"SCHEMA","subject":"late","version":1,"magic":1}`, `{"subject":"late","version":1,"id":20,"schema":"\"float\"","deleted":false}`)
	r.want("PUT", "/config/x", `{"compatibility":"NONE"}`, 200, `{"compatibility":"NONE"}`) // reads up to here
	r.want("GET", "/schemas/ids/20", "", 200, `{"schema":"\"float\""}`)
	r.want("POST", "/subjects/new2/versions", request(`"boolean"`), 200, `{"id":21}`)
}

// everyRecord is the topic's keys and values, in order.
func everyRecord(t *testing.T, e *brokertest.Engine, topic string) (out [][2]string) {
	t.Helper()
	client := e.Client(t, kgo.ConsumeTopics(topic))
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	for next := int64(0); next < end.Offset; {
		for _, r := range client.PollFetches(t.Context()).Records() {
			out = append(out, [2]string{string(r.Key), string(r.Value)})
			next = r.Offset + 1
		}
	}
	return out
}

// Keys must be Confluent's byte for byte: where the topic is compacted a key
// of another spelling is another key, and what it deleted would rise again.
func TestRecordsAreConfluents(t *testing.T) {
	t.Parallel()
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	r := start(t, e, topic)
	r.ask("POST", "/subjects/a<b/versions", request(`"int"`))
	r.ask("POST", "/subjects/u/versions", `{"schema":"\"string\"","metadata":{"properties":{"owner":"x"}},"references":[{"name":"n","subject":"a<b","version":1}]}`)
	r.ask("PUT", "/config", `{"compatibility":"FULL"}`)
	r.ask("PUT", "/config/u", `{"compatibility":"NONE","normalize":true}`)
	r.ask("PUT", "/mode", `{"mode":"READWRITE"}`)
	r.ask("PUT", "/mode/u", `{"mode":"READWRITE"}`)
	r.ask("DELETE", "/subjects/u", "")
	r.ask("DELETE", "/subjects/u?permanent=true", "")
	want := [][2]string{
		{`{"keytype":"SCHEMA","subject":"a<b","version":1,"magic":1}`, `{"subject":"a<b","version":1,"id":1,"schema":"\"int\"","deleted":false}`},
		{`{"keytype":"SCHEMA","subject":"u","version":1,"magic":1}`, `{"subject":"u","version":1,"id":2,"references":[{"name":"n","subject":"a<b","version":1}],"metadata":{"properties":{"owner":"x"}},"schema":"\"string\"","deleted":false}`},
		{`{"keytype":"CONFIG","magic":0}`, `{"compatibilityLevel":"FULL"}`},
		{`{"keytype":"CONFIG","subject":"u","magic":0}`, `{"subject":"u","normalize":true,"compatibilityLevel":"NONE"}`},
		{`{"keytype":"MODE","magic":0}`, `{"mode":"READWRITE"}`},
		{`{"keytype":"MODE","subject":"u","magic":0}`, `{"subject":"u","mode":"READWRITE"}`},
		{`{"keytype":"SCHEMA","subject":"u","version":1,"magic":1}`, `{"subject":"u","version":1,"id":2,"references":[{"name":"n","subject":"a<b","version":1}],"metadata":{"properties":{"owner":"x"}},"schema":"\"string\"","deleted":true}`},
		{`{"magic":0,"keytype":"NOOP"}`, `{"highestId":2}`},
		{`{"keytype":"SCHEMA","subject":"u","version":1,"magic":1}`, ``},
		{`{"keytype":"CONFIG","subject":"u","magic":0}`, ``},
		{`{"keytype":"MODE","subject":"u","magic":0}`, ``},
	}
	got := everyRecord(t, e, topic)[1:] // the first is the one by which the server read to the end
	if !slices.Equal(got, want) {
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("record %d\n got %q\nwant %q", i, got[i:], want[i:])
			}
		}
	}
}

func TestWhatOnlyConfluentUnderstandsIsKept(t *testing.T) {
	t.Parallel()
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	start(t, e, topic).stop() // declares the topic
	put(t, e, topic,
		`{"keytype":"SCHEMA","subject":"one","version":1,"magic":1}`, `{"subject":"one","version":1,"id":1,"metadata":{"properties":{"a":"b"}},"ruleSet":{"domainRules":[{"name":"r"}]},"schema":"\"int\"","deleted":false}`,
		`{"keytype":"CONFIG","subject":"one","magic":0}`, `{"alias":"x","compatibilityLevel":"NONE","compatibilityGroup":"g"}`,
		`{"keytype":"CONFIG","subject":null,"magic":0}`, `{"compatibilityLevel":"NONE"}`,
		`{"keytype":"MODE","subject":null,"magic":0}`, `{"mode":"READONLY"}`,
		`{"keytype":"MODE","subject":"one","magic":0}`, `{"mode":"READWRITE"}`,
	)
	r := start(t, e, topic)
	r.want("GET", "/mode", "", 200, `{"mode":"READONLY"}`)
	r.want("GET", "/config", "", 200, `{"compatibilityLevel":"NONE"}`)
	r.want("GET", "/schemas/ids/1", "", 200, `{"schema":"\"int\"","metadata":{"properties":{"a":"b"}},"ruleSet":{"domainRules":[{"name":"r"}]}}`)
	// Who sends neither means the schema; its successor inherits both.
	r.want("POST", "/subjects/one/versions", request(`"int"`), 200, `{"id":1}`)
	r.want("POST", "/subjects/one/versions", request(`"long"`), 200, `{"id":2}`)
	r.want("GET", "/schemas/ids/2", "", 200, `{"schema":"\"long\"","metadata":{"properties":{"a":"b"}},"ruleSet":{"domainRules":[{"name":"r"}]}}`)
	r.want("POST", "/subjects/one/versions", `{"schema":"\"int\"","metadata":{"properties":{"a":"c"}}}`, 200, `{"id":3}`)
	r.want("PUT", "/config/one", `{"compatibility":"FULL"}`, 200, `{"compatibility":"FULL"}`)
	r.want("DELETE", "/mode", "", 200, `{"mode":"READONLY"}`)
	r.want("DELETE", "/config", "", 200, `{"compatibilityLevel":"NONE"}`)
	last := map[string]string{}
	for _, kv := range everyRecord(t, e, topic) {
		last[kv[0]] = kv[1]
	}
	for key, want := range map[string]string{
		`{"keytype":"CONFIG","subject":"one","magic":0}`: `{"subject":"one","alias":"x","compatibilityLevel":"FULL","compatibilityGroup":"g"}`,
		// Deleted under both spellings, or the older would rise again.
		`{"keytype":"CONFIG","subject":null,"magic":0}`: ``,
		`{"keytype":"CONFIG","magic":0}`:                ``,
		`{"keytype":"MODE","subject":null,"magic":0}`:   ``,
		`{"keytype":"MODE","magic":0}`:                  ``,
	} {
		if got, ok := last[key]; !ok || got != want {
			t.Errorf("%s ends as %q (%t), want %q", key, got, ok, want)
		}
	}
}

func TestClearedSubjectIsForgotten(t *testing.T) {
	t.Parallel()
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	r := start(t, e, topic)
	for _, name := range []string{"one", "two", "three"} {
		r.ask("POST", "/subjects/"+name+"/versions", request(`"int"`))
	}
	r.ask("DELETE", "/subjects/one", "")
	r.ask("DELETE", "/subjects/two", "")
	put(t, e, topic, `{"keytype":"CLEAR_SUBJECT","subject":"one","magic":0}`, `{"subject":"one"}`)
	r.ask("PUT", "/config", `{"compatibility":"FULL"}`) // reads up to here
	r.want("GET", "/subjects?deleted=true", "", 200, `["three","two"]`)
	put(t, e, topic, `{"keytype":"CLEAR_SUBJECT","magic":0}`, `{}`)
	r.ask("PUT", "/config", `{"compatibility":"FULL"}`)
	r.want("GET", "/subjects?deleted=true", "", 200, `["three"]`)
	r.want("GET", "/schemas/ids/1", "", 200, `{"schema":"\"int\""}`)
}

func TestSubjectThatBeganWithABadDefaultGoesOn(t *testing.T) {
	t.Parallel()
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	start(t, e, topic).stop() // declares the topic
	put(t, e, topic, `{"keytype":"SCHEMA","subject":"old","version":1,"magic":1}`,
		`{"subject":"old","version":1,"id":1,"schema":"{\"type\":\"record\",\"name\":\"T\",\"fields\":[{\"name\":\"n\",\"type\":\"int\",\"default\":\"0\"}]}","deleted":false}`)
	r := start(t, e, topic)
	bad := request(`{"type":"record","name":"T","fields":[{"name":"n","type":"int","default":"0"}]}`)
	r.refused("POST", "/subjects/new/versions", request(`{"type":"record","name":"T2","fields":[{"name":"n","type":"int","default":"0"}]}`), 422, 42201)
	r.want("POST", "/subjects/old/versions", bad, 200, `{"id":1}`) // whoever has it compiled in still finds it
	r.refused("POST", "/subjects/old/versions", request(`{"type":"record","name":"T","fields":[{"name":"m","type":"int"}]}`), 409, 409)
	r.want("POST", "/subjects/old/versions", request(`{"type":"record","name":"T","fields":[{"name":"n","type":"long","default":0}]}`), 200, `{"id":2}`)
}
