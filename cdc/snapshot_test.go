package cdc_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/cdc"
)

// writers changes a table at random until stopped: several at once, several
// rows a transaction, some undone. It returns when all have ended.
func (w *world) writers(table string, keys int, every time.Duration) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var all sync.WaitGroup
	for i := range 3 {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				err := pgx.BeginFunc(context.Background(), w.db, func(tx pgx.Tx) error {
					if _, err := tx.Exec(context.Background(), "SET LOCAL lock_timeout = '200ms'"); err != nil {
						return err
					}
					for range 1 + r.IntN(4) {
						if _, err := tx.Exec(context.Background(), change(r, table, keys, n)); err != nil {
							return err
						}
					}
					if r.IntN(8) == 0 {
						return pgx.ErrTxCommitRollback
					}
					return nil
				})
				_ = err // a lock or a key of another writer: undone, which is as good
				pauseFor(ctx, every)
			}
		})
	}
	return func() {
		cancel()
		all.Wait()
	}
}

func pauseFor(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func change(r *rand.Rand, table string, keys, n int) string {
	key := r.IntN(keys)
	switch r.IntN(10) {
	case 0, 1:
		return fmt.Sprintf("DELETE FROM %s WHERE id = %d", table, key)
	case 2:
		return fmt.Sprintf("UPDATE %s SET id = %d WHERE id = %d AND NOT EXISTS (SELECT FROM %s WHERE id = %d)", table, r.IntN(keys), key, table, key+1)
	case 3, 4, 5:
		return fmt.Sprintf("UPDATE %s SET v = '%d' WHERE id = %d", table, n, key)
	}
	return fmt.Sprintf("INSERT INTO %s (id, v) VALUES (%d, '%d') ON CONFLICT (id) DO UPDATE SET v = excluded.v", table, key, n)
}

func TestSnapshotWhileOthersWriteEndsUpAsTheTable(t *testing.T) {
	t.Parallel()
	for _, identity := range []string{"DEFAULT", "FULL"} {
		t.Run(identity, func(t *testing.T) {
			w := newWorld(t)
			w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, v text)", "ALTER TABLE shop.thing REPLICA IDENTITY "+identity,
				"INSERT INTO shop.thing SELECT n, 'first' FROM generate_series(0, 599, 2) n")
			table := w.table("thing")
			stopWriters := w.writers("shop.thing", 600, time.Millisecond)
			cfg := w.config(table)
			cfg.ChunkRows = 25
			w.start(w.new(cfg))
			w.settle()
			must(t, cdc.RequestSnapshot(t.Context(), w.db, "", "shop.thing"))
			w.settle()
			stopWriters()
			w.confirmed()
			w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
			if s := w.status().Tables[0].Snapshot; s.RowsRead < 150 {
				t.Errorf("snapshot %+v", s)
			}
		})
	}
}

func TestSnapshotGoesOnWhereItWasCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, v text)", "INSERT INTO shop.thing SELECT n, 'first' FROM generate_series(0, 599) n")
	table := w.table("thing")
	stopWriters := w.writers("shop.thing", 600, 50*time.Millisecond)
	cfg := w.config(table)
	cfg.ChunkRows, cfg.MaxInFlight = 50, 50
	runs, before := 0, int64(-1)
	for {
		stop := w.start(w.slow(cfg, 50*time.Millisecond))
		runs++
		w.snapshotBegun()
		// Cut off as soon as there is one chunk more.
		var s cdc.SnapshotStatus
		w.eventually("a chunk more", func() (bool, any) {
			all := w.status().Tables
			if len(all) == 0 {
				return false, "no table"
			}
			s = all[0].Snapshot
			return s.RowsRead > before || s.Phase == "done", s
		})
		stop()
		if s = w.status().Tables[0].Snapshot; s.Phase == "done" && runs > 3 {
			break
		} else if s.Phase == "done" { // a slow machine saw too little of it: another snapshot
			must(t, cdc.RequestSnapshot(t.Context(), w.db, "", "shop.thing"))
			before = -1
			w.dropSessions()
			continue
		}
		if s.RowsRead < before {
			t.Fatalf("it began again: %d rows after %d", s.RowsRead, before)
		}
		before = s.RowsRead
		w.dropSessions()
	}
	stopWriters()
	w.start(w.new(cfg))
	w.settle()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
}

// dropSessions ends whatever sessions the slot has left.
func (w *world) dropSessions() {
	w.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active AND database = current_database()")
}

func TestSnapshotIsMadeAgainWhenAskedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY)", "INSERT INTO shop.thing SELECT generate_series(1, 10)")
	table := w.table("thing")
	w.run(table)
	must(t, cdc.RequestSnapshot(t.Context(), w.db, "", "shop.thing"))
	w.settle()
	reads := 0
	for _, e := range w.told(table.Topic) {
		if e.Op == "r" {
			reads++
		}
	}
	if reads != 20 {
		t.Errorf("%d rows were read, want each twice", reads)
	}
	if err := cdc.RequestSnapshot(t.Context(), w.db, "", "shop.other"); err == nil {
		t.Error("a snapshot of a table that is not published was taken for asked")
	}
	// Somebody who may emit messages forges watermarks: nothing comes of it.
	w.exec("SELECT pg_logical_emit_message(true, 'waybill.cdc', 'x'), pg_logical_emit_message(false, 'waybill.cdc', 'wake'), pg_logical_emit_message(true, 'other', 'x')")
	w.confirmed()
	if n := len(w.records(table.Topic)); n != 20 {
		t.Errorf("%d records", n)
	}
}

func TestChunksAreBoundedInBytes(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, doc text)",
		"INSERT INTO shop.thing SELECT n, repeat(md5(n::text), 2000) FROM generate_series(1, 40) n")
	table := w.table("thing")
	cfg := w.config(table)
	cfg.ChunkBytes = 256 << 10 // four large rows
	w.start(w.new(cfg))
	w.settle()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
	marks := map[any]int{}
	for _, e := range w.told(table.Topic) {
		marks[e.Value["lsn"]] += len(e.Record.Value)
	}
	for _, size := range marks {
		if size > 512<<10 {
			t.Errorf("a chunk of %d bytes", size)
		}
	}
	if len(marks) < 5 {
		t.Errorf("%d chunks", len(marks))
	}
}
