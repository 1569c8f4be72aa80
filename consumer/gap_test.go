package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
)

// gaps sets what a member does about them, and how long it waits.
func gaps(g Gaps, wait time.Duration) func(*setup) {
	return func(s *setup) { s.cfg.Gaps, s.cfg.GapWait = g, wait }
}

const never = 24 * time.Hour

// made are the effects of a key in the order they were made.
func (w *world) made(key string) []int64 {
	w.t.Helper()
	var ns []int64
	if err := w.db.QueryRow(w.t.Context(), `SELECT coalesce(array_agg(n ORDER BY serial), '{}') FROM effect WHERE key = $1`, key).Scan(&ns); err != nil {
		w.t.Fatal(err)
	}
	return ns
}

// missing are the numbers of a key reported missing, sorted.
func (w *world) missing(key string) (ns []int64) {
	w.t.Helper()
	all, err := FoundGaps(w.t.Context(), w.db, w.group, "tenant-of-"+key, 10_000)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, g := range all {
		for n := g.First; g.Kind == "missing" && g.Key == key && n <= g.Last; n++ {
			ns = append(ns, n)
		}
	}
	slices.Sort(ns)
	return ns
}

// held waits until an event is parked because of a gap.
func (w *world) held(n int64) {
	w.t.Helper()
	w.until(fmt.Sprint(n, " events are held"), func() bool {
		return w.number(`SELECT count(*) FROM waybill.parked WHERE class = 'gap'`) == n
	})
}

func (w *world) untilMade(key string, want ...int64) {
	w.t.Helper()
	w.until(fmt.Sprint("the effects of ", key, " are ", want), func() bool { return slices.Equal(w.made(key), want) })
}

func (w *world) hasMissing(key string, want ...int64) {
	w.t.Helper()
	if got := w.missing(key); !slices.Equal(got, want) {
		w.t.Errorf("numbers of %s reported missing: %v, want %v", key, got, want)
	}
}

func TestAnEventWaitsForTheNumbersBeforeIt(t *testing.T) {
	t.Parallel()
	for _, g := range []Gaps{HoldGaps, StopAtGaps} {
		w := newWorld(t, 1)
		w.start(keep, gaps(g, never), func(s *setup) { s.cfg.Metrics = w.metrics })
		w.move("a", "b")
		second, third := w.record("a"), w.record("a")
		w.move("a", "b", "a")
		w.held(1)
		w.untilMade("b", 1, 2)
		if got := w.made("a"); !slices.Equal(got, []int64{1}) {
			t.Errorf("effects %v while two numbers are missing", got)
		}
		states, err := Partitions(t.Context(), w.db, w.group)
		if err != nil || len(states) != 1 || states[0].Gaps != 1 {
			t.Errorf("%+v, %v", states, err)
		}
		w.publish(third) // the later of the two comes first
		w.held(2)
		w.publish(second)
		w.settled()
		w.move("a")
		w.settled()
		w.hasMissing("a")
	}
}

func TestWhatNeverComesIsToldOnceAndPassed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	m := w.start(keep, gaps(HoldGaps, 300*time.Millisecond), func(s *setup) { s.cfg.Metrics = w.metrics })
	w.move("a")
	w.sent["a"] += 2
	w.move("a", "a")
	w.sent["a"]++
	w.move("a")
	w.untilMade("a", 1, 4, 5, 7)
	w.hasMissing("a", 2, 3, 6)
	w.until("an incident", func() bool {
		seen, err := incident.List(t.Context(), w.db, time.Time{}, 10)
		return err == nil && len(seen) == 1 && seen[0].Kind == "sequence_gap" && seen[0].Count == 2
	})
	m.end(t)
	w.exec(`UPDATE waybill.watermark SET next_offset = 0`)
	w.start(keep, gaps(HoldGaps, 300*time.Millisecond))
	w.move("a")
	w.untilMade("a", 1, 4, 5, 7, 8)
	w.hasMissing("a", 2, 3, 6)
}

func TestStoppedAtAGap(t *testing.T) {
	t.Parallel()
	stopped := func(t *testing.T) (*world, *kgo.Record) {
		w := newWorld(t, 1)
		w.start(keep, gaps(StopAtGaps, 200*time.Millisecond))
		w.move("a")
		second := w.record("a")
		w.move("a", "a")
		k := w.untilDead(1)[0]
		if k.Class != "gap" || k.Behind != 1 {
			t.Errorf("%+v", k)
		}
		w.hasMissing("a", 2)
		return w, second
	}
	t.Run("redriven it goes on without", func(t *testing.T) {
		t.Parallel()
		w, second := stopped(t)
		if _, err := Redrive(t.Context(), w.db, DeadFilter{Group: w.group}, Ask{By: "test"}); err != nil {
			t.Fatal(err)
		}
		w.untilMade("a", 1, 3, 4)
		w.publish(second)
		if k := w.untilDead(1)[0]; k.Class != "late" || k.EventID != headerOf(second, event.HeaderID) {
			t.Errorf("%+v", k)
		}
		w.hasMissing("a", 2)
	})
	t.Run("what was missing frees it", func(t *testing.T) {
		t.Parallel()
		w, second := stopped(t)
		w.publish(second)
		w.settled()
		w.hasMissing("a", 2)
	})
	t.Run("dropped, the next goes on", func(t *testing.T) {
		t.Parallel()
		w, _ := stopped(t)
		k := w.deadKeys(DeadFilter{})[0]
		if _, err := Drop(t.Context(), w.db, Dropping{Group: w.group, Event: k.EventID}, Ask{By: "test", Reason: "it is nothing"}); err != nil {
			t.Fatal(err)
		}
		w.untilMade("a", 1, 4)
		w.move("a")
		w.untilMade("a", 1, 4, 5)
		w.hasMissing("a", 2)
	})
}

func TestAGroupThatOnlyReportsWaitsForNothing(t *testing.T) {
	t.Parallel()
	for _, o := range []Ordering{ByKey, ByPartition} {
		w := newWorld(t, 1)
		w.start(keep, gaps(ReportGaps, never), func(s *setup) { s.cfg.Ordering = o })
		w.move("a")
		second := w.record("a")
		w.move("a")
		w.publish(second, w.record("a"))
		w.untilMade("a", 1, 3, 2, 4)
		w.hasMissing("a", 2)
		if n := w.number(`SELECT count(*) FROM waybill.gap WHERE kind = 'late' AND first = 2`); n != 1 {
			t.Errorf("%d late events reported, want 1", n)
		}
	}
}

func TestALateEventIsDeadUntilItIsRedriven(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.start(keep, gaps(HoldGaps, 100*time.Millisecond))
	w.move("a")
	second := w.record("a")
	w.move("a")
	w.untilMade("a", 1, 3)
	w.publish(second, w.record("a"))
	if k := w.untilDead(1)[0]; k.Class != "late" || k.Behind != 1 {
		t.Errorf("%+v", k)
	}
	if _, err := Redrive(t.Context(), w.db, DeadFilter{Group: w.group}, Ask{By: "test"}); err != nil {
		t.Fatal(err)
	}
	w.untilMade("a", 1, 3, 2, 4)
	if n := w.number(`SELECT count(*) FROM waybill.gap WHERE kind = 'late'`); n != 1 {
		t.Errorf("%d late events reported, want 1", n)
	}
}

// As waybill outbox skip leaves it.
func TestWhatTheOutboxSkippedIsNoGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	if err := pg.Migrate(t.Context(), w.db, tables.Migration()); err != nil {
		t.Fatal(err)
	}
	w.start(keep, gaps(HoldGaps, never))
	w.move("a")
	skipped := w.record("a")
	id := headerOf(skipped, event.HeaderID)
	w.exec(`INSERT INTO waybill.outbox_events (id, topic, subject, source, type, time, tenant, sequence, correlation_id, causation_id,
		trace_parent, schema_fingerprint, body) VALUES ($1, $2, 'a', '', '', now(), 'tenant-of-a', 2, '', '', '', 0, '')`, id, w.contract.Topic)
	w.exec(`INSERT INTO waybill.outbox_skips (event_id, reason, asked_by) VALUES ($1, '', '')`, id)
	w.move("a")
	w.held(1) // asked for is not carried out
	w.exec(`INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset) VALUES ($1, now(), -1, -1)`, id)
	w.untilMade("a", 1, 3)
	w.hasMissing("a")
}

func TestWhatThePolicyDropsIsNoGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if e.Data.N%3 == 2 {
			return errNone
		}
		return keep(ctx, tx, e)
	}, gaps(StopAtGaps, never), policy(When("none", Is(errNone)).ThenDrop()))
	w.move("a", "a", "a", "a", "a", "a")
	w.untilMade("a", 1, 3, 4, 6)
	w.hasMissing("a")
}

func TestTheFirstNumberSeenIsTheBaseline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.sent["a"] = 40
	w.start(keep, gaps(ReportGaps, never))
	w.move("a", "a")
	w.untilMade("a", 41, 42)
	w.hasMissing("a")
	w.sent["a"]++
	w.move("a")
	w.untilMade("a", 41, 42, 44)
	w.hasMissing("a", 43)
}

// Of a type that nobody handles, and of one that the filter leaves out.
func TestEventsThatAreNotHandledAreCounted(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*setup){
		"no handler": func(*setup) {},
		"filter":     func(s *setup) { s.cfg.Filter.Types = []string{"test.accounts.Moved"} },
		"sets": func(s *setup) {
			s.handlers = func(g *Group, c *event.Contract) {
				onBatch(g, c, func(ctx context.Context, tx pgx.Tx, es []event.Of[moved]) error {
					for _, e := range es {
						if err := keep(ctx, tx, e); err != nil {
							return err
						}
					}
					return nil
				})
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			w.start(keep, gaps(StopAtGaps, never), set)
			w.move("a")
			w.publish(w.other("a"), w.record("a"))
			w.untilMade("a", 1, 3)
			missing := w.other("a")
			w.publish(w.record("a"), w.other("a"), w.record("a"))
			w.held(1)
			w.publish(missing)
			w.untilMade("a", 1, 3, 5, 7)
			w.hasMissing("a")
			if n := w.number(`SELECT count(*) FROM waybill.inbox`); n != 4 {
				t.Errorf("%d claims, want those of 4 events that have effects", n)
			}
		})
	}
}

// other is the key's next event, of a type that has no handler.
func (w *world) other(key string) *kgo.Record {
	rec := w.record(key)
	for i := range rec.Headers {
		if rec.Headers[i].Key == event.HeaderType {
			rec.Headers[i].Value = []byte("test.accounts.Other")
		}
	}
	return rec
}

func TestAMemberTakesOverWhatIsHeld(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	first := w.start(keep, gaps(HoldGaps, never))
	w.move("a", "b", "c", "d")
	var missing []*kgo.Record
	for _, k := range []string{"a", "b", "c", "d"} {
		missing = append(missing, w.record(k))
		w.move(k, k)
	}
	w.held(4)
	w.start(keep, gaps(HoldGaps, never))
	w.until("both work", func() bool { return w.members() == 2 })
	w.publish(missing[0], missing[1])
	first.end(t)
	w.publish(missing[2], missing[3])
	w.settled()
	w.hasMissing("a")
}

// A key that moved to another partition: what is missing comes by the old one.
func TestWhatIsMissingMayComeByAnotherPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.start(keep, gaps(HoldGaps, never))
	w.producer = w.engine.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	first, second, third, fourth := w.record("a"), w.record("a"), w.record("a"), w.record("a")
	third.Partition, fourth.Partition = 1, 1
	w.publish(first)
	w.untilMade("a", 1)
	w.publish(third, fourth)
	w.held(1)
	w.publish(second)
	w.settled()
	w.hasMissing("a")
}

func TestAResetBeginsCountingAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	m := w.start(keep, gaps(StopAtGaps, 100*time.Millisecond))
	w.move("a")
	w.sent["a"]++
	w.move("a")
	w.untilDead(1)
	m.end(t)
	w.reset(ToOffset(1), ResetOptions{})
	w.start(keep, gaps(StopAtGaps, never))
	w.untilMade("a", 1, 3)
	w.hasMissing("a", 2)
}

// Read again and known: each shows how far the group has come.
func TestAResetThatKeepsTheInboxFindsItsNumbers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	m := w.start(keep, gaps(HoldGaps, 100*time.Millisecond))
	w.move("a", "a")
	w.sent["a"]++
	w.move("a")
	w.untilMade("a", 1, 2, 4)
	m.end(t)
	w.reset(ToBeginning(), ResetOptions{KeepInbox: true})
	w.start(keep, gaps(HoldGaps, never))
	w.move("a")
	w.untilMade("a", 1, 2, 4, 5)
	w.hasMissing("a", 3)
}

func TestNumbersThatNobodyCountedAreNoGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	for i, g := range []Gaps{HoldGaps, IgnoreGaps, HoldGaps} {
		m := w.start(keep, gaps(g, never))
		w.move("a", "a")
		w.until("they are handled", func() bool { return w.effects("a") == int64(2*i+2) })
		m.end(t)
	}
	w.settled()
}

func TestKeysLongQuietAreForgotten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	m := w.start(keep, gaps(HoldGaps, never))
	w.move("a", "b")
	w.until("they are handled", func() bool { return w.effects("a")+w.effects("b") == 2 })
	w.exec(`UPDATE waybill.sequence SET seen_at = now() - interval '9 days' WHERE key = 'a'`)
	s := m.group.running.Load()
	if err := s.pruneSequences(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := w.number(`SELECT count(*) FROM waybill.sequence`); n != 1 {
		t.Errorf("%d keys are remembered, want that of b", n)
	}
	w.sent["a"] += 5
	w.move("a")
	w.untilMade("a", 1, 7)
}

func TestGapsThatCannotBeFoundAreRefused(t *testing.T) {
	for want, c := range map[string]Config{
		"gaps 9":                {Gaps: 9},
		"delivery AtLeastOnce":  {Gaps: ReportGaps, Delivery: AtLeastOnce},
		"without order":         {Gaps: ReportGaps, Ordering: Unordered},
		"only behind the one":   {Gaps: HoldGaps, Ordering: ByPartition},
		"less than InboxKeep":   {Gaps: HoldGaps, GapWait: 30 * 24 * time.Hour},
		"what Config.Gaps find": {Policy: Policy{When("gap", Is(errNone))}},
	} {
		c = c.withDefaults()
		if err := errors.Join(c.checkGaps(), c.Policy.check()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
