package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/registry/compat"
)

// step is one request of one client.
type step struct{ method, path, schema, body string }

func steps() *rapid.Generator[[]step] {
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) step {
		subject := "/subjects/" + rapid.SampledFrom([]string{"one", "two", "three"}).Draw(t, "subject")
		text := fmt.Sprintf(`{"type":"record","name":"T","fields":[{"name":"f%d","type":"int"}]}`, rapid.IntRange(0, 9).Draw(t, "schema"))
		body, _ := json.Marshal(map[string]string{"schema": text})
		register := step{http.MethodPost, subject + "/versions", text, string(body)}
		mode := strings.Replace(subject, "subjects", "mode", 1)
		chosen, _ := json.Marshal(map[string]any{"schema": text, "id": 100 + rapid.IntRange(0, 5).Draw(t, "id")})
		referring, _ := json.Marshal(map[string]any{"schema": `{"type":"record","name":"R","fields":[{"name":"t","type":"T"}]}`, "references": []reference{{"T", "two", 1}}})
		return rapid.SampledFrom([]step{
			register, register, register, register, register, register,
			{http.MethodPost, subject + "/versions", "", string(chosen)},
			{http.MethodPost, "/subjects/four/versions", "", string(referring)},
			{http.MethodDelete, "/subjects/four", "", ""},
			{http.MethodPut, mode, "", `{"mode":"READONLY"}`},
			{http.MethodPut, mode + "?force=true", "", `{"mode":"IMPORT"}`},
			{http.MethodDelete, mode, "", ""},
			{http.MethodDelete, mode, "", ""},
			{http.MethodPut, "/config", "", `{"compatibility":"NONE"}`},
			{http.MethodDelete, subject, "", ""},
			{http.MethodDelete, subject + "?permanent=true", "", ""},
			{http.MethodDelete, subject + "/versions/latest", "", ""},
			{http.MethodDelete, subject + "/versions/1?permanent=true", "", ""},
			{http.MethodPut, strings.Replace(subject, "subjects", "config", 1), "", `{"compatibility":"NONE"}`},
			{http.MethodDelete, strings.Replace(subject, "subjects", "config", 1), "", ""},
		}).Draw(t, "step")
	}), 10, 40)
}

func do(s *Server, st step) (int, string) {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequestWithContext(context.Background(), st.method, st.path, strings.NewReader(st.body)))
	return w.Code, w.Body.String()
}

func run(t *testing.T, e *brokertest.Engine, topic string) (s *Server, stop func()) {
	t.Helper()
	s = New(e.Config, Config{Topic: topic, Capabilities: e.Capabilities, Compatibility: compat.None, Logger: e.Logger})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-ended:
		t.Fatal(err)
	}
	return s, func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// book is which schema each id was answered for.
type book struct {
	mu   sync.Mutex
	text map[int]string
}

func (b *book) note(t *testing.T, body, text string) {
	var got registerAnswer
	if err := json.Unmarshal([]byte(body), &got); err != nil || got.ID == 0 {
		t.Errorf("answer %s: %v", body, err)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, ok := b.text[got.ID]; ok && old != text {
		t.Errorf("id %d was given to %s and to %s", got.ID, old, text)
	}
	b.text[got.ID] = text
}

// Three servers that know nothing of each other write one topic at once. No id
// names two schemas, all come to the same state, and so does one that starts
// later, even when the topic was compacted.
func TestServersThatRaceGiveNoIdTwice(t *testing.T) {
	t.Parallel()
	e := brokertest.New(t)
	for seed := range 12 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { race(t, e, seed) })
	}
}

func race(t *testing.T, e *brokertest.Engine, seed int) {
	topic := brokertest.Topic(t, "schemas")
	given := &book{text: map[int]string{}}
	var wg sync.WaitGroup
	var servers []*Server
	for range 3 {
		s, stop := run(t, e, topic)
		t.Cleanup(stop)
		servers = append(servers, s)
	}
	for i, s := range servers {
		plan := steps().Example(seed*10 + i)
		wg.Go(func() { follow(t, s, plan, given) })
	}
	wg.Wait()
	want := ""
	for _, s := range servers {
		do(s, step{http.MethodPut, "/config", "", `{"compatibility":"NONE"}`}) // reads up to here
		got := s.state.dump()
		if want != "" && got != want {
			t.Errorf("servers disagree:\n%s\nand\n%s", want, got)
		}
		want = got
	}
	late, stop := run(t, e, topic)
	t.Cleanup(stop)
	if got := late.state.dump(); got != want {
		t.Errorf("a later server disagrees:\n%s\nand\n%s", want, got)
	}
	replayCompacted(t, read(t, e, topic), want)
	for id, text := range given.text {
		if c := late.state.byID[id]; c != nil && c.text != text {
			t.Errorf("id %d was answered for %s, now it is %s", id, text, c.text)
		}
	}
}

// follow takes the steps of a plan one after the other.
func follow(t *testing.T, s *Server, plan []step, given *book) {
	for _, st := range plan {
		code, body := do(s, st)
		if code >= 500 {
			t.Errorf("%s %s: %d %s", st.method, st.path, code, body)
		}
		if code == 200 && st.schema != "" {
			given.note(t, body, st.schema)
		}
	}
}

// dump is the state without what need not be equal.
func (st *state) dump() string {
	st.mu.RLock()
	defer st.mu.RUnlock()
	var b strings.Builder
	fmt.Fprintln(&b, st.levelOf(""), st.modeOf(""), "dirty", len(st.dirty))
	for _, name := range st.list("", func(s *subject) bool { return len(s.versions) > 0 || s.config != nil || s.mode != "" }) {
		fmt.Fprintln(&b, name, st.subjects[name].level(), st.subjects[name].mode)
		for _, v := range st.subjects[name].versions {
			fmt.Fprintln(&b, " ", v.number, v.id, v.text, v.deleted)
		}
	}
	return b.String()
}

// read is the whole topic.
func read(t *testing.T, e *brokertest.Engine, topic string) []*kgo.Record {
	t.Helper()
	client := e.Client(t, kgo.ConsumeTopics(topic))
	ends, err := kadm.NewClient(client).ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	end, _ := ends.Lookup(topic, 0)
	var out []*kgo.Record
	for int64(len(out)) < end.Offset {
		out = append(out, client.PollFetches(t.Context()).Records()...)
	}
	return out
}

// replayCompacted keeps the last record of each key, as compaction would, and
// expects the same state.
func replayCompacted(t *testing.T, records []*kgo.Record, want string) {
	t.Helper()
	last := map[string]int64{}
	for _, r := range records {
		last[string(r.Key)] = r.Offset
	}
	refused := 0
	whole, compacted := newState(compat.None), newState(compat.None)
	for _, r := range records {
		if !whole.apply(r) {
			refused++
		}
	}
	for _, r := range slices.DeleteFunc(records, func(r *kgo.Record) bool { return last[string(r.Key)] != r.Offset }) {
		compacted.apply(r)
	}
	if got := compacted.dump(); got != want {
		t.Errorf("after compaction:\n%s\nwant\n%s", got, want)
	}
	if whole.highest != compacted.highest {
		t.Errorf("highest id %d after compaction, want %d", compacted.highest, whole.highest)
	}
	t.Logf("%d records, %d refused", len(records), refused)
}
