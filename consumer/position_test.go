package consumer

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
)

func TestBeginning(t *testing.T) {
	id, other := [16]byte{1}, [16]byte{2}
	log := bounds{id, 10, 20}
	at := func(id [16]byte, next int64) *position { return &position{topicID: id, next: next} }
	for name, c := range map[string]struct {
		saved  *position
		offset int64
		fault  string
	}{
		"new group":               {nil, 10, faultNone},
		"known":                   {at(id, 15), 15, faultNone},
		"at the end":              {at(id, 20), 20, faultNone},
		"at the start":            {at(id, 10), 10, faultNone},
		"beyond the end":          {at(id, 21), 10, faultBeyondEnd},
		"retention overtook":      {at(id, 9), 10, faultExpired},
		"recreated":               {at(other, 15), 10, faultRecreated},
		"recreated and far ahead": {at(other, 99), 10, faultRecreated},
	} {
		if offset, fault := log.begin(c.saved); offset != c.offset || fault != c.fault {
			t.Errorf("%s: %d %q, want %d %q", name, offset, fault, c.offset, c.fault)
		}
	}
}

// The database is the truth: with the broker's commits lost, nothing is read
// twice.
func TestLostCommitsRepeatNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	var calls atomic.Int32
	counted := func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		calls.Add(1)
		return keep(ctx, tx, e)
	}
	m := w.start(counted)
	for range 10 {
		w.move("a", "b", "c")
	}
	w.settled()
	m.end(t)
	if next := w.next(); next != 30 {
		t.Fatalf("watermark %d after a clean end", next)
	}
	adm := kadm.NewClient(w.producer)
	if _, err := adm.DeleteGroups(t.Context(), w.group); err != nil {
		t.Fatal(err)
	}
	w.exec(`DELETE FROM waybill.inbox`) // nothing but the watermark knows
	w.start(counted)
	w.move("a")
	w.settled()
	if calls.Load() != 31 {
		t.Errorf("%d calls for 31 events", calls.Load())
	}
}

func TestBrokerOffsetsFollowTheDatabase(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.start(keep)
	w.move("a", "a", "b")
	w.settled()
	adm := kadm.NewClient(w.producer)
	w.until("committed to the broker", func() bool {
		o, err := adm.FetchOffsets(t.Context(), w.group)
		if err != nil {
			return false
		}
		at, ok := o.Lookup(w.contract.Topic, 0)
		return ok && at.At == 3
	})
}

func TestAWatermarkBeyondTheLogIsNotBelieved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "b")
	m := w.start(keep)
	w.settled()
	m.end(t)
	w.exec(`UPDATE waybill.watermark SET next_offset = 1000`)
	w.move("a")
	w.start(keep, func(s *setup) { s.cfg.Metrics = w.metrics })
	w.until("it stops", func() bool { return w.stopped() })
	if n := faults(t, w.metrics); n[faultBeyondEnd] != 1 || w.number(`SELECT count(*) FROM effect`) != 2 {
		t.Errorf("faults: %v, or something was handled", n)
	}
	// What was handled is known, and passed over.
	w.reset(ToBeginning(), ResetOptions{Stopped: true, KeepInbox: true})
	w.settled()
	w.until("the position is mended", func() bool { return w.next() == 3 })
}

// stopped tells whether the database shows a partition as stopped.
func (w *world) stopped() bool {
	w.t.Helper()
	all, err := Partitions(w.t.Context(), w.db, w.group)
	if err != nil {
		w.t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(p PartitionState) bool { return p.Stopped != "" })
}

func (w *world) reset(to To, o ResetOptions) []Moved {
	w.t.Helper()
	moved, err := Reset(w.t.Context(), Deps{DB: w.db, Client: w.engine.Config.Client}, w.group, w.contract.Topic, to, o)
	if err != nil {
		w.t.Fatal(err)
	}
	return moved
}

func TestARecreatedTopicStopsUntilItIsReset(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	if err := pg.Migrate(t.Context(), w.db, incident.Migration()); err != nil {
		t.Fatal(err)
	}
	m := w.start(keep)
	for range 5 {
		w.move("a")
	}
	w.settled()
	m.end(t)
	adm := kadm.NewClient(w.producer)
	if _, err := adm.DeleteTopics(t.Context(), w.contract.Topic); err != nil {
		t.Fatal(err)
	}
	w.producer.PurgeTopicsFromClient(w.contract.Topic)
	w.until("the topic is gone", func() bool {
		l, err := adm.ListTopics(t.Context(), w.contract.Topic)
		return err == nil && !l.Has(w.contract.Topic)
	})
	w.declare(1)
	for range 10 {
		w.move("a", "b")
	}
	w.start(keep, func(s *setup) { s.cfg.Metrics = w.metrics })
	w.until("it stops", func() bool { return w.stopped() && w.gauge("waybill_consumer_stopped_partitions") == 1 })
	if n := faults(t, w.metrics); n[faultRecreated] != 1 {
		t.Errorf("faults: %v", n)
	}
	seen, err := incident.List(t.Context(), w.db, time.Now().Add(-time.Hour), 10)
	if err != nil || len(seen) != 1 || !strings.Contains(seen[0].Text, "waybill groups reset") {
		t.Errorf("incidents: %+v, %v", seen, err)
	}
	if n := w.number(`SELECT count(*) FROM effect`); n != 5 || w.next() != 5 {
		t.Errorf("%d effects, position %d: something went on", n, w.next())
	}
	w.reset(ToBeginning(), ResetOptions{Stopped: true})
	w.settled()
	if w.stopped() {
		t.Error("it is still shown as stopped")
	}
}

func faults(t *testing.T, reg *prometheus.Registry) map[string]float64 {
	t.Helper()
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]float64{}
	for _, f := range all {
		if f.GetName() != "waybill_consumer_position_faults_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "kind" {
					out[l.GetValue()] = m.GetCounter().GetValue()
				}
			}
		}
	}
	return out
}

// "Now" is decided once: what came while the member was away is not skipped.
func TestFromNowIsDecidedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.publish(w.recordOf(moved{"old", 1}))
	now := func(s *setup) { s.cfg.From = Now }
	m := w.start(keep, now)
	w.until("it has begun", func() bool { return w.next() == 1 })
	m.end(t)
	w.move("a")
	w.start(keep, now)
	w.settled()
}
