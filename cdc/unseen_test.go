package cdc_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/cdc"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// A transaction is in the WAL, and in the stream, a moment before others see
// it. Here it stays so for long, since it waits for a standby that is not
// there: a chunk that is read meanwhile has the row of before, and must not
// put it behind the change.
func TestRowReadBeforeItsChangeCouldBeSeenIsNotToldAfterIt(t *testing.T) {
	t.Parallel()
	srv := pgtest.Server(t, local.Config{Settings: map[string]string{"fsync": "off"}})
	admin, err := pgx.Connect(t.Context(), srv.AdminDSN())
	must(t, err)
	defer func() { _ = admin.Close(context.Background()) }()
	// Nobody else waits.
	cfg, err := pgx.ParseConfig(srv.DSN())
	must(t, err)
	for _, sql := range []string{
		"SET synchronous_commit = local", "ALTER ROLE " + cfg.User + " SET synchronous_commit = local",
		"ALTER SYSTEM SET synchronous_standby_names = 'nobody'", "SELECT pg_reload_conf()",
	} {
		_, err = admin.Exec(t.Context(), sql)
		must(t, err)
	}
	w := newWorldOn(t, srv.DSN())
	for rows := 200; ; rows *= 2 {
		w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, v text)",
			fmt.Sprintf("INSERT INTO shop.thing SELECT n, 'old' FROM generate_series(1, %d) n", rows))
		table := w.table("thing")
		c := w.config(table)
		c.ChunkRows = 1
		stop := w.start(w.new(c))
		if w.changeUnseen(table, rows) {
			break
		}
		stop() // the snapshot was faster
		w.exec("DROP TABLE shop.thing")
	}
	w.snapshotWhileUnseen()
}

// snapshotWhileUnseen asks for a snapshot while a change, told already, cannot
// be seen.
func (w *world) snapshotWhileUnseen() {
	w.t.Helper()
	topic := w.status().Tables[0].Topic
	show, committed := w.hold("UPDATE shop.thing SET v = 'newer' WHERE id = 2")
	w.eventually("the change is in the topic", func() (bool, any) { return fmt.Sprint(w.rebuilt(topic)["2"]["v"]) == "newer", w.rebuilt(topic)["2"] })
	must(w.t, cdc.RequestSnapshot(w.t.Context(), w.db, "", "shop.thing"))
	w.eventually("it is about to begin", func() (bool, any) {
		return w.logged.has(slog.LevelInfo, "reading a table", "asked for"), w.logged.last()
	})
	time.Sleep(200 * time.Millisecond) // one that does not wait has read the row by now
	show()
	must(w.t, <-committed)
	w.settle()
	w.same(w.rebuilt(topic), w.rows("shop.thing", "id::text"))
}

// hold commits a statement that nobody sees until show is called.
func (w *world) hold(sql string) (show func(), committed <-chan error) {
	w.t.Helper()
	conn, err := pgx.Connect(w.t.Context(), w.dsn)
	must(w.t, err)
	w.t.Cleanup(func() { _ = conn.Close(context.Background()) })
	done := make(chan error, 1)
	go func() {
		_, err := conn.Exec(context.Background(), "SET synchronous_commit = on")
		if err == nil {
			_, err = conn.Exec(context.Background(), sql)
		}
		done <- err
	}()
	pid := conn.PgConn().PID()
	return func() { w.exec(fmt.Sprintf("SELECT pg_cancel_backend(%d)", pid)) }, done
}

// changeUnseen changes the last row so that it is in the stream before it can
// be seen, while the snapshot is on its way to it. It is false if the snapshot
// got there first.
func (w *world) changeUnseen(table cdc.Table, rows int) bool {
	w.t.Helper()
	read := func() int64 {
		all := w.status().Tables
		if len(all) == 0 {
			return 0
		}
		return all[0].Snapshot.RowsRead
	}
	w.eventually("the snapshot has begun", func() (bool, any) { return read() > 0, "" })
	show, committed := w.hold(fmt.Sprintf("UPDATE shop.thing SET v = 'new' WHERE id = %d", rows))
	last := fmt.Sprint(rows)
	w.eventually("the change is in the topic", func() (bool, any) {
		for _, e := range w.told(table.Topic) {
			if string(e.Key) == last && e.Op == "u" {
				return true, nil
			}
		}
		return false, "it is not"
	})
	inTime := read() < int64(rows)-10 // a few chunks are on their way
	w.eventually("the snapshot is done", func() (bool, any) {
		s := w.status().Tables[0].Snapshot
		return s.Phase == "done" || s.Phase == "sweeping", s
	})
	select {
	case err := <-committed:
		w.t.Fatalf("the change could be seen: %v", err)
	default:
	}
	var v string
	must(w.t, w.db.QueryRow(w.t.Context(), "SELECT v FROM shop.thing WHERE id = $1", rows).Scan(&v))
	if v != "old" {
		w.t.Fatalf("the change can be seen")
	}
	show()
	must(w.t, <-committed)
	w.settle()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
	return inTime
}
