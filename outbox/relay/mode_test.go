package relay_test

import (
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/later"
	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/pg"
)

// inModes runs a test in every mode.
func inModes(t *testing.T, test func(t *testing.T, w *world)) {
	for _, mode := range []relay.Mode{relay.WAL, relay.Poll, relay.Message} {
		t.Run(string(mode), func(t *testing.T) { test(t, newWorldIn(t, mode)) })
	}
}

func newWorldIn(t *testing.T, mode relay.Mode) *world {
	t.Helper()
	w := newWorld(t)
	w.cfg.Mode = mode
	if mode == relay.Message {
		w.ob = outbox.New([]*event.Contract{w.contract}, outbox.Config{Messages: true})
	}
	return w
}

func TestEventsGoOutIfAndOnlyIfTheirTransactionCommits(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, w *world) {
		w.relay()
		for i := range 30 {
			err := pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
				if err := w.ob.Add(tenant(t.Context()), tx, noted{contract: w.contract, Account: "a", N: int64(i)}); err != nil {
					return err
				}
				if i%3 == 0 {
					return errOops
				}
				return nil
			})
			if i%3 != 0 {
				must(t, err)
			}
		}
		got, copies := story(t, w.read(20))
		var want []int64
		for i := range 30 {
			if i%3 != 0 {
				want = append(want, int64(i))
			}
		}
		if !slices.Equal(got["a"], want) || copies > 0 {
			t.Errorf("published %v, %d copies", got, copies)
		}
	})
}

var errOops = fmt.Errorf("oops")

// Writers of one account take turns by its row's lock; each makes its event's
// id long before it commits, and long ones overlap with short ones.
func TestWritersThatOverlapKeepEachKeysOrder(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, w *world) {
		w.exec(`CREATE TABLE account (id text PRIMARY KEY, n bigint NOT NULL)`)
		w.exec(`INSERT INTO account SELECT 'a' || i, 0 FROM generate_series(0, 4) i`)
		w.relay()
		const writers, each = 6, 40
		var g sync.WaitGroup
		for k := range writers {
			g.Go(func() {
				for i := range each {
					err := pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
						account := fmt.Sprint("a", (k+i)%5)
						var n int64
						if err := tx.QueryRow(t.Context(), `UPDATE account SET n = n + 1 WHERE id = $1 RETURNING n`, account).Scan(&n); err != nil {
							return err
						}
						if err := w.ob.Add(tenant(t.Context()), tx, noted{contract: w.contract, Account: account, N: n}); err != nil {
							return err
						}
						_, err := tx.Exec(t.Context(), `SELECT pg_sleep($1)`, float64((k*7+i)%9)/1000)
						return err
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
		g.Wait()
		got, copies := story(t, w.read(writers*each))
		for account, seen := range got {
			if !slices.Equal(seen, upTo(len(seen))) {
				t.Errorf("%s: %v", account, seen)
			}
		}
		if copies > 0 {
			t.Errorf("%d copies though nothing broke", copies)
		}
	})
}

// Relays come and go while events are written; two are there at a time.
func TestRelaysThatTakeOverLoseNothing(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, w *world) {
		stop := w.relay()
		const n = 1500
		var writer sync.WaitGroup
		writer.Go(func() {
			for i := 0; i < n; i += 5 {
				w.addAll(fmt.Sprint("a", i/5%3), i+1, i+5)
			}
		})
		for range 4 {
			time.Sleep(60 * time.Millisecond)
			next := w.relay()
			stop()
			stop = next
		}
		writer.Wait()
		got, copies := story(t, w.read(n))
		total := 0
		for account, seen := range got {
			if !slices.IsSorted(seen) {
				t.Errorf("%s: %v", account, seen)
			}
			total += len(seen)
		}
		if total != n || copies > n/3 {
			t.Errorf("%d events, %d copies", total, copies)
		}
	})
}

func TestABrokerThatRefusesIsWaitedForInEveryMode(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, w *world) {
		one, other := w.keys()
		w.topicLimit("100000")
		log, _ := w.loudRelay()
		w.add(one, 1)
		w.read(1)
		w.addHuge(one, 2)
		w.addAll(one, 3, 10)
		w.addAll(other, 1, 10)
		w.told(log, 1, "an event is refused")
		w.read(11)
		if w.stops() != 1 {
			t.Errorf("%d stops", w.stops())
		}
		w.topicLimit("1000000")
		w.told(log, 1, "a stopped partition goes on")
		w.addAll(one, 11, 20)
		got, _ := story(t, w.read(30))
		if !slices.Equal(got[one], upTo(20)) || !slices.Equal(got[other], upTo(10)) {
			t.Errorf("published %v", got)
		}
		if w.stops() != 0 {
			t.Errorf("%d stops", w.stops())
		}
	})
}

func TestAnEventInTheWALAloneCanBeGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, relay.Message)
	w.topicLimit("100000")
	log, _ := w.loudRelay()
	w.add("a", 1)
	w.read(1)
	w.addHuge("a", 2)
	w.addAll("a", 3, 5)
	w.told(log, 1, "an event is refused")
	w.exec(`INSERT INTO waybill.outbox_skips (event_id, reason, asked_by) SELECT event_id, 'too large', 'test' FROM waybill.outbox_stopped`)
	w.told(log, 1, "a stopped partition goes on")
	if got, _ := story(t, w.read(4)); !slices.Equal(got["a"], []int64{1, 3, 4, 5}) {
		t.Errorf("published %v", got)
	}
	w.caughtUp()
}

// caughtUp waits until the slot is confirmed past all that was written.
func (w *world) caughtUp() {
	w.t.Helper()
	var lsn string
	must(w.t, w.db.QueryRow(w.t.Context(), `SELECT pg_current_wal_insert_lsn()::text`).Scan(&lsn))
	w.eventually(func() (ok bool, why string) {
		must(w.t, w.db.QueryRow(w.t.Context(), `SELECT coalesce(bool_or(confirmed_flush_lsn >= $1::pg_lsn), false) FROM pg_replication_slots WHERE database = current_database()`, lsn).Scan(&ok))
		return ok, "the slot does not come to " + lsn
	})
}

// Anybody with the right may write messages of any prefix.
func TestMessagesOfOthersArePassedOver(t *testing.T) {
	w := newWorldIn(t, relay.Message)
	log, _ := w.loudRelay()
	w.add("a", 1)
	w.read(1)
	w.exec(`SELECT pg_logical_emit_message(true, 'waybill2', 'x'), pg_logical_emit_message(true, 'way', 'x'), pg_logical_emit_message(false, 'waybill', 'x')`)
	w.exec(`SELECT pg_logical_emit_message(true, 'waybill', 'nonsense')`)
	w.add("a", 2)
	if got, _ := story(t, w.read(2)); !slices.Equal(got["a"], upTo(2)) {
		t.Errorf("published %v", got)
	}
	if log.count("is no event") != 1 || w.incidents("foreign_message") != 1 {
		t.Errorf("the foreign message was told %d times, with %d incidents", log.count("is no event"), w.incidents("foreign_message"))
	}
	w.caughtUp()
}

// With no table to find them in, events are gone with the slot: loudly.
func TestALostSlotWithoutATableIsToldAsLoss(t *testing.T) {
	w := newWorldIn(t, relay.Message)
	stop := w.relay()
	w.add("a", 1)
	w.read(1)
	stop()
	w.freeSlot()
	w.add("a", 2)
	log, _ := w.loudRelay()
	w.told(log, 1, "events may be lost")
	w.add("a", 3)
	if got, _ := story(t, w.read(2)); !slices.Equal(got["a"], []int64{1, 3}) {
		t.Errorf("published %v", got)
	}
	if w.incidents("slot_gone") != 1 {
		t.Error("no incident")
	}
}

// freeSlot drops the slot, which the server may hold for a moment after its
// reader has gone.
func (w *world) freeSlot() {
	w.t.Helper()
	w.eventually(func() (bool, string) {
		_, err := w.db.Exec(w.t.Context(), `SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE database = current_database()`)
		return err == nil, fmt.Sprint(err)
	})
}

// A row may become visible after others with higher ids, and long after.
func TestPollingFindsWhatCommitsLate(t *testing.T) {
	w := newWorldIn(t, relay.Poll)
	notifier := outbox.NewNotifier(w.db, slog.New(slog.DiscardHandler))
	w.ob = outbox.New([]*event.Contract{w.contract}, outbox.Config{Notifier: notifier})
	go func() { _ = notifier.Run(t.Context()) }()
	w.cfg.PollInterval = time.Minute // only notifications are in time
	w.relay()
	late, err := w.db.Begin(t.Context())
	must(t, err)
	must(t, w.ob.Add(tenant(t.Context()), late, noted{contract: w.contract, Account: "late", N: 1}))
	for i := range 20 {
		w.add("a", int64(i+1))
	}
	w.marked(20)
	must(t, late.Commit(t.Context()))
	w.add("a", 21)
	w.marked(22)
	got, copies := story(t, w.read(22))
	if len(got["late"]) != 1 || !slices.Equal(got["a"], upTo(21)) || copies > 0 {
		t.Errorf("published %v, %d copies", got, copies)
	}
	// Whatever is below the floor need not be looked at again.
	w.eventually(func() (ok bool, why string) {
		w.add("a", 22)
		must(t, w.db.QueryRow(t.Context(), `SELECT published_below > (SELECT min(xid) FROM waybill.outbox_events) FROM waybill.outbox_slots`).Scan(&ok))
		return ok, "the floor does not rise"
	})
}

// The backlog is larger than what is in flight, and writers do not wait.
// What was added for later is carried as all else is, once it is due.
func TestEventsForLaterAreCarried(t *testing.T) {
	t.Parallel()
	for _, mode := range []relay.Mode{relay.WAL, relay.Poll, relay.Message} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			w := newWorldIn(t, mode)
			w.relay()
			must(t, pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
				_, err := w.ob.At(time.Now()).Add(tenant(t.Context()), tx, noted{contract: w.contract, Account: "a", N: 1}, noted{contract: w.contract, Account: "a", N: 2})
				return err
			}))
			n, err := later.New(w.db, later.Config{Messages: mode == relay.Message}).Once(t.Context())
			must(t, err)
			if n != 2 {
				t.Fatalf("%d moved", n)
			}
			if got, copies := story(t, w.read(2)); !slices.Equal(got["a"], upTo(2)) || copies > 0 {
				t.Errorf("published %v, %d copies", got, copies)
			}
		})
	}
}

// A slot of another mode keeps WAL for ever: who polls says so.
func TestPollingTellsOfASlotThatIsLeftOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	stop := w.relay()
	w.add("a", 1)
	w.marked(1)
	stop()
	w.eventually(func() (idle bool, why string) {
		must(t, w.db.QueryRow(t.Context(), `SELECT bool_and(NOT active) FROM pg_replication_slots WHERE database = current_database()`).Scan(&idle))
		return idle, "the slot is still read"
	})
	w.cfg.Mode = relay.Poll
	log, _ := w.loudRelay()
	w.told(log, 1, "a replication slot is left over")
	w.add("a", 2)
	w.marked(2)
	if n := w.incidents("slot_left_over"); n != 1 {
		t.Errorf("%d incidents", n)
	}
}

func TestABacklogIsPolledInOrder(t *testing.T) {
	w := newWorldIn(t, relay.Poll)
	w.cfg.MaxUnmarked = 500
	for i := range 20 {
		w.addAll("a", i*500+1, i*500+500)
	}
	w.relay()
	w.marked(10_000)
	got, copies := story(t, w.read(10_000))
	if !slices.Equal(got["a"], upTo(10_000)) || copies > 0 {
		t.Errorf("%d events, %d copies", len(got["a"]), copies)
	}
}

// What a sweep has not published is in no slot either.
func TestPollingCallsNothingCompleteItHasNotPublished(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.Mode = relay.Poll
	w.exec(`INSERT INTO waybill.outbox_slots (slot, complete_at) VALUES ($1, NULL)`, relay.SlotName(w.db.Config().ConnConfig.Database))
	w.add("a", 1)
	w.client = func(opts ...kgo.Opt) (*kgo.Client, error) {
		return kgo.NewClient(append(opts, kgo.SeedBrokers("127.0.0.1:1"))...)
	}
	log, stop := w.loudRelay()
	complete := func() (ok bool) {
		must(t, w.db.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM waybill.outbox_slots WHERE complete_at IS NOT NULL)`).Scan(&ok))
		return ok
	}
	w.told(log, 1, "no partitions to publish to yet")
	if complete() {
		t.Error("complete before anything is published")
	}
	stop()
	w.client = nil
	w.relay()
	w.marked(1)
	w.eventually(func() (bool, string) { return complete(), "never complete" })
}

// Without a mark a relay that polls would publish everything again and again;
// on one connection it would wait for itself.
func TestWhatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg = relay.Config{Mode: relay.Poll, NoMarks: true}
	if err := w.newRelay(nil).Run(t.Context()); err == nil {
		t.Error("polls without marks")
	}
	w.cfg = relay.Config{}
	one, err := pg.Open(t.Context(), w.db.Config().ConnString(), pg.Config{MaxConns: 1})
	must(t, err)
	defer one.Close()
	w.relayDB = one
	if err := w.newRelay(nil).Run(t.Context()); err == nil {
		t.Error("runs on one connection")
	}
}

// The session before brought nothing, so that this one begins with a single
// event: which is refused.
func TestACarefulRelayIsNotHeldByARefusedEvent(t *testing.T) {
	t.Parallel()
	inModes(t, func(t *testing.T, w *world) {
		one, other := w.keys()
		w.topicLimit("100000")
		log, _ := w.loudRelay()
		w.eventually(func() (bool, string) {
			w.exec(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()
				AND pid IN (SELECT pid FROM pg_locks WHERE locktype = 'advisory' UNION SELECT active_pid FROM pg_replication_slots)`)
			return log.count("relay stopped") > 0, "the relay goes on"
		})
		w.addHuge(one, 1)
		w.addAll(other, 1, 10)
		if got, _ := story(t, w.read(10)); !slices.Equal(got[other], upTo(10)) {
			t.Errorf("published %v", got)
		}
	})
}
