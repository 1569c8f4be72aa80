package consumer

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/event"
)

// many publishes n events of so many keys.
func (w *world) many(n, keys int) {
	w.t.Helper()
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprint("k", i%keys)
	}
	w.move(all...)
}

// transactions is how many made the effects.
func (w *world) transactions() int64 {
	return w.number(`SELECT count(DISTINCT xmin::text) FROM effect`)
}

// rounds has round run until it says that what it shows was seen. How many
// events share a transaction follows from the pace of their handlers: on a
// machine with other things to do, each may stand alone for a while.
func (w *world) rounds(what string, round func() bool) {
	w.t.Helper()
	for late := time.Now().Add(3 * time.Minute); !round(); {
		if time.Now().After(late) {
			w.t.Fatalf("in no round: %s", what)
		}
	}
}

func TestEventsThatWaitShareTransactions(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	w.start(keep)
	before := int64(0)
	w.rounds("1000 events share transactions", func() bool {
		w.many(1000, 100)
		w.settled()
		all := w.transactions()
		n := all - before
		before = all
		return n <= 900 // far fewer, unless the machine is slow
	})
}

func TestWithABatchOfOneEachEventHasItsTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.many(60, 7)
	w.start(keep, func(s *setup) { s.cfg.MaxBatch = 1 })
	w.settled()
	if n := w.transactions(); n != 60 {
		t.Errorf("%d transactions for 60 events", n)
	}
}

// What shares a transaction with an event that fails is done again without it.
func TestAFailureIsCountedAgainstItsEventOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	bad := troubleWith(moved{"k3", 4}, moved{"k7", 1})
	w.many(200, 10)
	w.start(bad.keep)
	w.until("the others have their effects", func() bool {
		return w.number(`SELECT count(*) FROM effect`) == 200-17-20 && len(w.parked()) == 2
	})
	for _, k := range w.parked() {
		if k.Key != "k3" && k.Key != "k7" {
			t.Errorf("parked: %+v", k)
		}
	}
	bad.mend()
	w.settled()
}

// The statement that fails and the error that shows are two events' otherwise.
func TestASwallowedErrorIsItsOwnEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var mended atomic.Bool
	w.many(100, 10)
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if err := keep(ctx, tx, e); err != nil {
			return err
		}
		if e.Data.Account == "k2" && !mended.Load() {
			_, _ = tx.Exec(ctx, `SELECT 1/0`)
		}
		return nil
	})
	w.until("it is parked, the others flow", func() bool {
		return w.number(`SELECT count(*) FROM effect`) == 90 && len(w.parked()) == 1
	})
	mended.Store(true)
	w.settled()
}

func TestADeadlockIsNoFaultOfAnEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	var times atomic.Int32
	w.many(50, 5)
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if e.Data == (moved{"k1", 2}) && times.Add(1) <= 8 {
			return fmt.Errorf("meet another: %w", &pgconn.PgError{Code: "40P01"})
		}
		return keep(ctx, tx, e)
	}, func(s *setup) { s.cfg.Retry = Retry{Attempts: 1, Park: time.Hour, ParkMax: time.Hour} })
	w.settled()
}

// Handlers that write the same rows in every order run into real deadlocks.
func TestBatchesThatMeetInTheSameRowsAllCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4)
	w.exec(`CREATE TABLE shared AS SELECT i, 0 AS n FROM generate_series(0, 19) i`)
	w.many(600, 100)
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		row := (e.Data.N*7 + int64(len(e.Data.Account))*3 + int64(e.Data.Account[len(e.Data.Account)-1])) % 20
		if _, err := tx.Exec(ctx, `UPDATE shared SET n = n + 1 WHERE i = $1`, row); err != nil {
			return err
		}
		return keep(ctx, tx, e)
	}, func(s *setup) { s.cfg.Retry = Retry{Attempts: 1, Park: time.Hour, ParkMax: time.Hour} })
	w.settled()
	if n := w.number(`SELECT sum(n) FROM shared`); n != 600 {
		t.Errorf("counted %d of 600", n)
	}
}

func TestASlowHandlerSharesNoTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.many(40, 20)
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		<-time.After(25 * time.Millisecond)
		return keep(ctx, tx, e)
	})
	w.settled()
	if n := w.transactions(); n != 40 {
		t.Errorf("%d transactions for 40 events", n)
	}
}

// One event that is slow against all expectation ends its transaction, and the
// claims of what was to follow are undone.
func TestABatchThatTakesLongGivesTheRestBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if e.Data.Account == "slow" {
			<-time.After(40 * time.Millisecond)
		}
		return keep(ctx, tx, e)
	}, func(s *setup) { s.cfg.Workers = 1 })
	w.many(200, 10)
	w.settled() // its pace is known
	w.move("a", "b", "slow", "c", "d", "a", "e")
	w.settled()
	if n := w.number(`SELECT count(*) FROM effect e JOIN effect s ON e.xmin::text = s.xmin::text
		WHERE s.key = 'slow' AND e.serial > s.serial`); n != 0 {
		t.Errorf("%d events followed it in its transaction", n)
	}
	if n := w.number(`SELECT count(*) FROM waybill.inbox`); n != 207 {
		t.Errorf("%d claims for 207 events", n)
	}
}

// A handler that names no tenant acts for none, whatever the one before did.
func TestATenantDoesNotOutliveItsEvent(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.exec(`CREATE TABLE guarded (tenant text); ALTER TABLE guarded ENABLE ROW LEVEL SECURITY;
		CREATE POLICY p ON guarded USING (tenant = current_setting('waybill.tenant', true))`)
	w.start(func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		var was string
		err := tx.QueryRow(ctx, `SELECT coalesce(current_setting('waybill.tenant', true), '')`).Scan(&was)
		if err != nil {
			return err
		}
		if was != "" && was != e.Tenant {
			return errors.New("it acts for " + was)
		}
		_, err = tx.Exec(ctx, `SELECT set_config('waybill.tenant', $1, true)`, e.Tenant)
		return errors.Join(err, keep(ctx, tx, e))
	}, func(s *setup) {
		s.cfg.Workers = 1
		s.cfg.Retry = Retry{Attempts: 1, Park: time.Hour, ParkMax: time.Hour}
	})
	w.rounds("a transaction is shared by two tenants", func() bool {
		w.many(90, 30)
		w.settled()
		return w.number(`SELECT count(*) FROM (SELECT FROM effect GROUP BY xmin::text HAVING count(DISTINCT tenant) > 1) t`) > 0
	})
}
