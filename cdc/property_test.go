package cdc_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/cdc"
)

// rapidChecks sets how many runs a property gets whose runs take seconds,
// unless the command line says it.
func rapidChecks(t *testing.T, n string) {
	t.Helper()
	f := flag.Lookup("rapid.checks")
	if f.Value.String() != f.DefValue {
		return
	}
	if err := f.Value.Set(n); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Value.Set(f.DefValue) })
}

var errUndone = errors.New("undone")

// Whatever is written, however often the publisher stops, breaks, loses its
// slot or reads again: in the end the topic is the table.
func TestTopicIsTheTableWhateverHappens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	rapidChecks(t, "8")
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, v text, doc text)", "ALTER TABLE shop.thing ALTER doc SET STORAGE EXTERNAL")
	table := w.table("thing")
	cfg := w.config(table)
	cfg.ChunkRows, cfg.MaxInFlight = 7, 20
	key := rapid.IntRange(0, 25)
	rapid.Check(t, func(rt *rapid.T) {
		w.exec("ALTER TABLE shop.thing REPLICA IDENTITY " + rapid.SampledFrom([]string{"FULL", "DEFAULT"}).Draw(rt, "identity"))
		var stop func()
		rt.Repeat(map[string]func(*rapid.T){
			"write": func(rt *rapid.T) { w.write(rt, key) },
			"start": func(rt *rapid.T) {
				if stop != nil {
					rt.Skip()
				}
				stop = w.start(w.new(cfg))
			},
			"stop": func(rt *rapid.T) {
				if stop == nil {
					rt.Skip()
				}
				stop()
				stop = nil
			},
			"cut": func(*rapid.T) {
				w.exec("SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE active AND database = current_database()")
			},
			"ask": func(rt *rapid.T) {
				if rapid.IntRange(0, 4).Draw(rt, "seldom") > 0 { // it would make up for anything that is lost before
					rt.Skip()
				}
				_ = cdc.RequestSnapshot(context.Background(), w.db, "", "shop.thing") // there may be no table yet
			},
			"lose the slot": func(rt *rapid.T) {
				if stop != nil {
					rt.Skip()
				}
				w.exec("SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active AND database = current_database()")
			},
			"truncate": func(rt *rapid.T) {
				if rapid.IntRange(0, 9).Draw(rt, "seldom") > 0 {
					rt.Skip()
				}
				w.exec("TRUNCATE shop.thing")
			},
			"wait": func(rt *rapid.T) {
				<-time.After(time.Duration(rapid.IntRange(1, 60).Draw(rt, "ms")) * time.Millisecond)
			},
		})
		if stop == nil {
			stop = w.start(w.new(cfg))
		}
		w.eventually("the topic is the table", func() (bool, any) {
			w.settle() // a TRUNCATE may be on its way
			diff := difference(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
			return diff == "", diff
		})
		stop()
	})
}

// write runs a transaction of some changes, parts or all of which may be
// undone.
func (w *world) write(rt *rapid.T, key *rapid.Generator[int]) {
	ctx := context.Background()
	n := rapid.IntRange(1, 6).Draw(rt, "changes")
	undo := rapid.IntRange(0, 9).Draw(rt, "undo") == 0
	err := pgx.BeginFunc(ctx, w.db, func(tx pgx.Tx) error {
		for i := range n {
			sql := w.oneChange(rt, key, i)
			part := rapid.IntRange(0, 9).Draw(rt, "part undone") == 0
			err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
				if _, err := tx.Exec(ctx, sql); err != nil {
					return err
				}
				if part {
					return errUndone
				}
				return nil
			})
			if err != nil && !errors.Is(err, errUndone) {
				return err
			}
		}
		if undo {
			return errUndone
		}
		return nil
	})
	if err != nil && !errors.Is(err, errUndone) {
		rt.Fatal(err)
	}
}

func (w *world) oneChange(rt *rapid.T, key *rapid.Generator[int], i int) string {
	k := key.Draw(rt, "key")
	v := rapid.IntRange(0, 999).Draw(rt, "v")
	switch rapid.SampledFrom([]string{"put", "put", "update", "large", "delete", "move", "many"}).Draw(rt, "what") {
	case "put":
		return fmt.Sprintf("INSERT INTO shop.thing (id, v) VALUES (%d, '%d.%d') ON CONFLICT (id) DO UPDATE SET v = excluded.v", k, v, i)
	case "update":
		return fmt.Sprintf("UPDATE shop.thing SET v = '%d.%d' WHERE id = %d", v, i, k)
	case "large":
		return fmt.Sprintf("UPDATE shop.thing SET doc = repeat('%d', 3000) WHERE id = %d", v, k)
	case "delete":
		return fmt.Sprintf("DELETE FROM shop.thing WHERE id = %d", k)
	case "move":
		to := key.Draw(rt, "to")
		return fmt.Sprintf("UPDATE shop.thing SET id = %d WHERE id = %d AND NOT EXISTS (SELECT FROM shop.thing WHERE id = %d)", to, k, to)
	}
	return fmt.Sprintf("UPDATE shop.thing SET v = 'all %d' WHERE id < %d", v, k)
}
