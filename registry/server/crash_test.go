package server

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/registry/compat"
)

// A writer may die after its record was refused and before it wrote the place
// again. The next server to start does it, before compaction can let the
// refused record hide the one that holds.
func TestPlaceOfADeadWriterIsWrittenAgainAtStart(t *testing.T) {
	t.Parallel()
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	s, stop := run(t, e, topic)
	for _, text := range []string{`"int"`, `"long"`} {
		body := `{"schema":` + string(encode(text)) + `}`
		if code, got := do(s, step{http.MethodPost, "/subjects/one/versions", text, body}); code != 200 {
			t.Fatal(got)
		}
	}
	want := s.state.dump()
	stop()

	client := e.Client(t, kgo.DefaultProduceTopic(topic))
	stale := stamp{"dead/1", 0, change}
	for _, r := range []schemaValue{
		{Subject: "one", Version: 2, ID: 3, Schema: `"bytes"`},     // the version was taken meanwhile
		{Subject: "one", Version: 3, ID: 2, Schema: `"double"`},    // so was the id
		{Subject: "other", Version: 1, ID: 1, Schema: `"boolean"`}, // and this one's
	} {
		rec := &kgo.Record{Key: schemaKey(r.Subject, r.Version), Value: encode(r), Headers: []kgo.RecordHeader{stale.header()}}
		if err := client.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s, stop = run(t, e, topic)
	defer stop()
	if got := s.state.dump(); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	replayCompacted(t, read(t, e, topic), want)
}

func TestDeletionReachesEverySpellingOfAKey(t *testing.T) {
	t.Parallel()
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	_, stop := run(t, e, topic)
	stop()
	client := e.Client(t, kgo.DefaultProduceTopic(topic))
	for _, key := range []string{`{"magic":1,"keytype":"SCHEMA","subject":"one","version":1}`, string(schemaKey("one", 1))} {
		rec := kgo.StringRecord(`{"subject":"one","version":1,"id":1,"schema":"\"int\"","deleted":false}`)
		rec.Key = []byte(key)
		if err := client.ProduceSync(t.Context(), rec).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	s, stop := run(t, e, topic)
	defer stop()
	for _, path := range []string{"/subjects/one", "/subjects/one?permanent=true"} {
		if code, got := do(s, step{http.MethodDelete, path, "", ""}); code != 200 {
			t.Fatal(got)
		}
	}
	replayCompacted(t, read(t, e, topic), s.state.dump())
}

func TestTopicThatCouldLoseSchemasIsRefused(t *testing.T) {
	t.Parallel()
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	client := e.Client(t)
	if err := broker.Declare(t.Context(), client, e.Capabilities, broker.Topic{Name: topic, Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	err := New(e.Config, Config{Topic: topic, Capabilities: e.Capabilities, Logger: e.Logger}).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), topic) {
		t.Errorf("ran on three partitions: %v", err)
	}
}

func TestServerThatStoppedAnswersAtOnce(t *testing.T) {
	t.Parallel()
	e, topic := brokertest.New(t), brokertest.Topic(t, "schemas")
	s, stop := run(t, e, topic)
	stop()
	if code, got := do(s, step{http.MethodPost, "/subjects/one/versions", "", `{"schema":"\"int\""}`}); code != 500 || !strings.Contains(got, "50001") {
		t.Errorf("%d %s", code, got)
	}
	if _, err := s.commit(t.Context(), stamp{}, draft{key: noopKey()}); !errors.Is(err, errNotRunning) {
		t.Error(err)
	}
}

func TestServerThatIsNotReadySaysSo(t *testing.T) {
	s := New(broker.Config{Brokers: []string{"127.0.0.1:1"}}, Config{Compatibility: compat.Full})
	if code, got := do(s, step{http.MethodGet, "/subjects", "", ""}); code != 503 || !strings.Contains(got, "503") {
		t.Errorf("%d %s", code, got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Run(ctx); err != nil {
		t.Errorf("run under a context that is over: %v", err)
	}
}

func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"keytype":"SCHEMA","subject":"one","version":1,"magic":1}`), []byte(`{"subject":"one","version":1,"id":1,"schema":"\"int\"","deleted":false}`), []byte("x/1 0 change"))
	f.Add([]byte(`{"keytype":"CONFIG","subject":null,"magic":0}`), []byte(`{"compatibilityLevel":"FULL"}`), []byte("x/1 0 keep"))
	f.Add([]byte(`{"keytype":"DELETE_SUBJECT","subject":"one","magic":0}`), []byte(`{"subject":"one","version":1}`), []byte("x 1 void"))
	f.Add([]byte(`{"keytype":"NOOP"}`), []byte(`{"highestId":7}`), []byte(""))
	f.Fuzz(func(t *testing.T, key, value, mark []byte) {
		st := newState(compat.Full)
		for offset := range int64(3) {
			r := &kgo.Record{Key: key, Value: value, Offset: offset}
			if len(mark) > 0 {
				r.Headers = []kgo.RecordHeader{{Key: stampHeader, Value: mark}}
			}
			st.apply(r)
		}
		for _, s := range st.subjects {
			for _, v := range s.versions {
				_, _ = st.compile(v.content)
			}
		}
	})
}
