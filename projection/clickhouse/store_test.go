package clickhouse_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/projection"
	"github.com/waybillhq/waybill/projection/clickhouse"
	engine "github.com/waybillhq/waybill/test/clickhouse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, s *engine.Server) *clickhouse.Store {
	t.Helper()
	store, err := clickhouse.Open(s.URL(), clickhouse.Config{Linger: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	if err := store.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	return store
}

func events(n int) []projection.Event {
	es := make([]projection.Event, n)
	for i := range es {
		es[i] = projection.Event{
			Envelope: event.Envelope{ID: event.NewID(), Tenant: "t", Type: "test.Paid", Subject: fmt.Sprint(i), Sequence: int64(i), Time: time.Now(), Source: "/payments"},
			Data:     fmt.Appendf(nil, `{"n":%d,"text":"it's \\ \"so\""}`, i),
		}
	}
	return es
}

func count(t *testing.T, s *clickhouse.Store, from string) (n uint64) {
	t.Helper()
	if err := s.Conn().QueryRow(t.Context(), "SELECT count() FROM "+from).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestWhatIsWrittenAgainIsReadOnce(t *testing.T) {
	s := open(t, engine.Start(t))
	es := events(500)
	// In other batches than before, as after a crash.
	for _, part := range [][]projection.Event{es[:300], es[100:], es, es[400:], es} {
		if err := s.Write(t.Context(), nil, part); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, s, "events FINAL"); n != 500 {
		t.Errorf("%d events are read, want 500", n)
	}
	if n := count(t, s, "events"); n <= 500 {
		t.Errorf("%d rows: nothing was written twice, so nothing was tried", n)
	}
	if n := count(t, s, "events FINAL WHERE JSONExtractInt(data, 'n') = sequence AND JSONExtractString(data, 'text') = 'it\\'s \\\\ \"so\"' AND time > now() - 3600"); n != 500 {
		t.Errorf("%d of them are as they were said", n)
	}
}

// The very same block again is known by its token, before the table is asked.
func TestABlockWhoseAnswerWasLostIsKnownByItsToken(t *testing.T) {
	s := open(t, engine.Start(t))
	es := events(50)
	for range 3 {
		if err := s.Write(t.Context(), nil, es); err != nil {
			t.Fatal(err)
		}
	}
	if n := count(t, s, "events"); n != 50 {
		t.Errorf("%d rows, want 50", n)
	}
}

func TestWritesThatComeTogetherAreFewInserts(t *testing.T) {
	s := open(t, engine.Start(t))
	var all sync.WaitGroup
	for range 40 {
		all.Go(func() {
			if err := s.Write(t.Context(), nil, events(10)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := count(t, s, "events"); n != 400 {
		t.Errorf("%d rows, want 400", n)
	}
	if n := count(t, s, "system.parts WHERE table = 'events'"); n > 20 {
		t.Errorf("forty writes made %d parts", n)
	}
}

// A write waits while nobody answers, is done when somebody does, and fails as
// infrastructure if that takes longer than it may.
func TestAWriteOutlastsAnOutage(t *testing.T) {
	server := engine.Start(t)
	s := open(t, server)
	server.Kill()
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if err := s.Write(short, nil, events(1)); !clickhouse.Infrastructure(err) {
		t.Errorf("an outage is told as %v", err)
	}
	done := make(chan error)
	go func() { done <- s.Write(t.Context(), nil, events(7)) }()
	server.Restart()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if n := count(t, s, "events FINAL"); n != 7 {
		t.Errorf("%d events, want 7", n)
	}
}

func TestAnEventThatClickHouseCannotKeepIsAtFaultItself(t *testing.T) {
	s := open(t, engine.Start(t))
	es := events(2)
	es[1].Time = time.Date(1560, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := s.Write(t.Context(), nil, es); err == nil || clickhouse.Infrastructure(err) {
		t.Errorf("%v", err)
	}
}

func TestNoErrorHasThePassword(t *testing.T) {
	_, err := clickhouse.Open("clickhouse://waybill:geheim@%zz:9000/x", clickhouse.Config{})
	if err == nil || strings.Contains(err.Error(), "geheim") {
		t.Errorf("%v", err)
	}
	for _, url := range []string{"http://waybill:geheim@127.0.0.1:1/x", "clickhouse://waybill:geheim@127.0.0.1:1/x"} {
		s, err := clickhouse.Open(url, clickhouse.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Prepare(t.Context()); err == nil || strings.Contains(err.Error(), "geheim") {
			t.Errorf("%s does not answer: %v", url, err)
		}
		_ = s.Close()
	}
}
