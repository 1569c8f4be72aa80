package consumer

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// spread is a bundle of an event of each of two partitions, the second of which
// is given up and over.
func spread(t *testing.T, decode func(context.Context, *message) (any, error)) (*session, *attempted, []item) {
	t.Helper()
	s := newSession(New(Deps{}, Config{Group: "spread"}), t.Context())
	a := &attempted{stuck: map[*lane]time.Duration{}}
	var items []item
	for id := range int32(2) {
		p := newPartition(t.Context(), place{"things", id}, [16]byte{}, 1, 0)
		l := p.lane("key")
		m := &message{rec: &kgo.Record{}, route: &route{typ: "any", decode: decode}}
		l.queue = append(l.queue, m)
		a.parts, items = append(a.parts, p), append(items, item{l, m})
	}
	s.mu.Lock()
	a.parts[1].halt()
	s.mu.Unlock()
	return s, a, items
}

// The end of one partition counts against no event of another that shares its
// bundle.
func TestAPartitionThatIsGivenUpCountsAgainstNoOtherOnesEvents(t *testing.T) {
	s, a, items := spread(t, func(ctx context.Context, _ *message) (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	})
	a.parts[1].cancel()
	if out := s.readable(a, items); len(out) != 0 {
		t.Fatalf("%d are read", len(out))
	}
	l := items[0].l
	if wait, stuck := a.stuck[l]; l.attempts != 0 || wait != 0 || !stuck {
		t.Errorf("%d attempts are counted, it waits for %s, stuck %v", l.attempts, wait, stuck)
	}
}

// An outage does not hold a partition that is given up.
func TestABundleLetsAPartitionGoInAnOutage(t *testing.T) {
	s, _, items := spread(t, nil)
	s.deps.DB = openPool(t, "postgres://nobody@127.0.0.1:1/none?connect_timeout=1", nil)
	done := make(chan struct{})
	go func() { defer close(done); s.outlast(items) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("it waits for the database")
	}
}
