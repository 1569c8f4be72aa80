package relay_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// replicated is a world whose commits can be made to wait for a standby that
// never comes: they are in the WAL then, and nobody sees them. The relay's own
// do not wait.
type replicated struct {
	*world
	admin *pgxpool.Pool
}

func newReplicated(t *testing.T) *replicated {
	t.Helper()
	srv := pgtest.Server(t, local.Config{})
	w := &replicated{world: newWorldOn(t, srv.DSN())}
	var err error
	w.admin, err = pg.Open(t.Context(), srv.AdminDSN(), pg.Config{})
	must(t, err)
	t.Cleanup(w.admin.Close)
	more := "?"
	if strings.Contains(srv.DSN(), "?") {
		more = "&"
	}
	w.relayDB, err = pg.Open(t.Context(), srv.DSN()+more+"options=-c%20synchronous_commit%3Dlocal", pg.Config{})
	must(t, err)
	t.Cleanup(w.relayDB.Close)
	return w
}

// standby names the standby that commits wait for, none if empty.
func (w *replicated) standby(name string) {
	w.t.Helper()
	for _, sql := range []string{`ALTER SYSTEM SET synchronous_standby_names = '` + name + `'`, `SELECT pg_reload_conf()`} {
		_, err := w.admin.Exec(w.t.Context(), sql)
		must(w.t, err)
	}
	// The server's processes hear of it one by one.
	w.eventually(func() (bool, string) {
		ctx, cancel := context.WithTimeout(w.t.Context(), 200*time.Millisecond)
		defer cancel()
		_, err := w.admin.Exec(ctx, `SELECT pg_logical_emit_message(true, 'probe', '')`)
		return (err != nil) == (name != ""), "the setting is not heard of"
	})
}

// until waits until the query says true.
func (w *replicated) until(sql string, args ...any) {
	w.t.Helper()
	w.eventually(func() (ok bool, why string) {
		must(w.t, w.admin.QueryRow(w.t.Context(), sql, args...).Scan(&ok))
		return ok, "never: " + sql
	})
}

// commitUnseen adds an event whose commit waits until the standby is given up.
func (w *replicated) commitUnseen(account string, n int64) (seen func()) {
	w.t.Helper()
	w.standby("nobody")
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.add(account, n)
	}()
	w.until(`SELECT EXISTS (SELECT FROM pg_stat_activity WHERE wait_event = 'SyncRep')`)
	return func() { w.standby(""); <-done }
}

// The stream has brought an event that was kept back, and the table does not
// show it yet.
func TestAnEventInTheStreamAndNotYetVisibleIsKeptBack(t *testing.T) {
	t.Parallel()
	w := newReplicated(t)
	w.topicLimit("100000")
	log, _ := w.loudRelay()
	w.addHuge("a", 1)
	w.told(log, 1, "an event is refused")
	seen := w.commitUnseen("a", 2)
	w.caughtUp()
	w.topicLimit("1000000")
	w.eventually(func() (bool, string) {
		return log.count("not visible yet") > 0 || log.count("a stopped partition goes on") > 0, "the partition is not looked at"
	})
	seen()
	w.add("a", 3)
	if got, _ := story(t, w.read(3)); !slices.Equal(got["a"], upTo(3)) {
		t.Errorf("published %v", got)
	}
}

// A transaction that the server does not wait for when it makes a slot, and
// that has committed before the slot begins, is not in the stream; nor does the
// table show it yet.
func TestACommitNotYetVisibleWhenTheSlotIsMadeIsPublished(t *testing.T) {
	t.Parallel()
	w := newReplicated(t)
	open := func() (tx pgx.Tx, xid string) {
		tx, err := w.db.Begin(t.Context())
		must(t, err)
		must(t, tx.QueryRow(t.Context(), `SELECT pg_current_xact_id()::xid::text`).Scan(&xid))
		return tx, xid
	}
	waits := `SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid' AND transactionid::text = $1)`
	first, xid := open()
	log, _ := w.loudRelay()
	w.until(waits, xid)
	second, xid := open()
	must(t, first.Rollback(t.Context()))
	w.until(waits, xid) // and for none that begins from here on
	seen := w.commitUnseen("a", 1)
	must(t, second.Rollback(t.Context()))
	w.eventually(func() (bool, string) {
		return log.count("waiting for transactions under way") > 0 || log.count("reading the outbox") > 0, "the slot is not made"
	})
	seen()
	w.add("a", 2)
	if got, _ := story(t, w.read(2)); !slices.Equal(got["a"], upTo(2)) {
		t.Errorf("published %v", got)
	}
}
