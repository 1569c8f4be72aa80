package relay_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/outbox/relay"
)

func newExactWorld(t *testing.T) *world {
	t.Helper()
	if !brokertest.Kafka() {
		t.Skip("exactly once needs transactions: set " + brokertest.Variable)
	}
	w := newWorld(t)
	w.cfg.ExactlyOnce = true
	return w
}

// committed reads what readers of committed records see.
func (w *world) committed(n int) []*kgo.Record {
	w.t.Helper()
	cl := w.engine.Client(w.t, kgo.ConsumeTopics(w.contract.Topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	var out []*kgo.Record
	for {
		wait := 2 * time.Minute
		if len(out) >= n {
			wait = 500 * time.Millisecond
		}
		ctx, cancel := context.WithTimeout(w.t.Context(), wait)
		got := cl.PollFetches(ctx).Records()
		late := ctx.Err() != nil
		cancel()
		if late && len(got) == 0 {
			if len(out) < n {
				w.t.Fatalf("%d committed records, want %d", len(out), n)
			}
			return out
		}
		out = append(out, got...)
	}
}

func TestExactlyOnceOverRelaysThatTakeOver(t *testing.T) {
	t.Parallel()
	for _, mode := range []relay.Mode{relay.WAL, relay.Poll} {
		t.Run(string(mode), func(t *testing.T) {
			w := newExactWorld(t)
			w.cfg.Mode = mode
			stop := w.relay()
			const n = 1200
			written := make(chan struct{})
			go func() {
				defer close(written)
				for i := 0; i < n; i += 5 {
					w.addAll(fmt.Sprint("a", i/5%3), i+1, i+5)
				}
			}()
			for range 3 {
				time.Sleep(100 * time.Millisecond)
				next := w.relay()
				stop()
				stop = next
			}
			<-written
			w.marked(n)
			got, copies := story(t, w.committed(n))
			total := 0
			for account, seen := range got {
				if !slices.IsSorted(seen) {
					t.Errorf("%s: %v", account, seen)
				}
				total += len(seen)
			}
			if total != n || copies > 0 {
				t.Errorf("%d events, %d copies", total, copies)
			}
		})
	}
}

// The marks of the last transaction are lost, and so is the slot: what is
// published is known from the broker alone.
func TestExactlyOnceWhenTheMarksAndTheSlotAreLost(t *testing.T) {
	t.Parallel()
	w := newExactWorld(t)
	stop := w.relay()
	w.addAll("a", 1, 50)
	w.marked(50)
	w.addAll("a", 51, 60)
	w.marked(60)
	stop()
	w.exec(`DELETE FROM waybill.outbox_published WHERE id IN (SELECT id FROM waybill.outbox_events WHERE sequence > 50)`)
	w.freeSlot()
	w.addAll("a", 61, 70)
	w.relay()
	w.marked(70)
	got, copies := story(t, w.committed(70))
	if !slices.Equal(got["a"], upTo(70)) || copies > 0 {
		t.Errorf("published %v, %d copies", got, copies)
	}
}

func TestExactlyOnceARefusedEventStopsItsPartitionAlone(t *testing.T) {
	t.Parallel()
	w := newExactWorld(t)
	one, other := w.keys()
	w.topicLimit("100000")
	log, _ := w.loudRelay()
	w.addAll(one, 1, 10)
	w.addHuge(one, 11)
	w.addAll(one, 12, 20)
	w.addAll(other, 1, 20)
	w.told(log, 1, "an event is refused")
	w.marked(30)
	w.topicLimit("1000000")
	w.told(log, 1, "a stopped partition goes on")
	w.marked(40)
	got, copies := story(t, w.committed(40))
	if !slices.Equal(got[one], upTo(20)) || !slices.Equal(got[other], upTo(20)) || copies > 0 {
		t.Errorf("published %v, %d copies", got, copies)
	}
}

// More than one transaction of the broker's for one of the database's.
func TestExactlyOnceALargeTransaction(t *testing.T) {
	t.Parallel()
	w := newExactWorld(t)
	w.relay()
	w.addAll("a", 1, 25_000)
	w.marked(25_000)
	got, copies := story(t, w.committed(25_000))
	if !slices.Equal(got["a"], upTo(25_000)) || copies > 0 {
		t.Errorf("%d events, %d copies", len(got["a"]), copies)
	}
}

func TestExactlyOnceNeedsMarks(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, cfg := range []relay.Config{{ExactlyOnce: true, Mode: relay.Message}, {ExactlyOnce: true, NoMarks: true}, {Mode: "other"}} {
		if err := relay.New(w.db, w.engine.Config.Client, schemaID(7), cfg).Run(t.Context()); err == nil {
			t.Errorf("%+v runs", cfg)
		}
	}
}
