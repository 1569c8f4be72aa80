package cdc_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/cdc"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/registry"
)

// childVariable has the test binary publish changes instead of testing, until
// it is killed: what it holds is a child.
const childVariable = "WAYBILL_CDC_CHILD"

type child struct {
	DSN      string
	Brokers  []string
	Registry string
	Config   struct {
		Tables    []cdc.Table
		ChunkRows int
	}
}

func childMain() {
	var c child
	if err := json.Unmarshal([]byte(os.Getenv(childVariable)), &c); err != nil {
		panic(err)
	}
	ctx := context.Background()
	db, err := pg.Open(ctx, c.DSN, pg.Config{})
	if err != nil {
		panic(err)
	}
	reg, err := registry.New(c.Registry, registry.Config{})
	if err != nil {
		panic(err)
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	// Slow, so that there is time to kill it at each chunk.
	client := func(opts ...kgo.Opt) (*kgo.Client, error) {
		return broker.Config{Brokers: c.Brokers, Logger: log}.Client(append(slices.Clone(opts), kgo.ProducerLinger(50*time.Millisecond))...)
	}
	err = cdc.New(db, client, reg, cdc.Config{
		Tables: c.Config.Tables, ChunkRows: c.Config.ChunkRows, MaxInFlight: c.Config.ChunkRows, Partitions: 3, Logger: log,
	}).Run(ctx)
	fmt.Fprintln(os.Stderr, "the child ended by itself:", err)
	os.Exit(1)
}

// spawn publishes in a process of its own. kill is SIGKILL.
func (w *world) spawn(chunkRows int, tables ...cdc.Table) (kill func()) {
	w.t.Helper()
	c := child{DSN: w.dsn, Brokers: w.engine.Brokers, Registry: w.url}
	c.Config.Tables, c.Config.ChunkRows = tables, chunkRows
	env, err := json.Marshal(c)
	must(w.t, err)
	cmd := exec.CommandContext(context.Background(), os.Args[0])
	cmd.Env = append(os.Environ(), childVariable+"="+string(env))
	var said strings.Builder
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	must(w.t, cmd.Start())
	killed := false
	kill = func() {
		if killed {
			return
		}
		killed = true
		_ = cmd.Process.Kill()
		if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
			w.t.Errorf("the child: %v\n%s", err, said.String())
		}
	}
	w.t.Cleanup(kill)
	return kill
}

// snapshotBegun waits until the latest snapshot that was asked for has begun.
func (w *world) snapshotBegun() {
	w.t.Helper()
	w.eventually("the snapshot has begun", func() (bool, any) {
		all := w.status().Tables
		return len(all) > 0 && !all[0].Snapshot.Pending, all
	})
}

func TestKilledAtEveryChunkItGoesOnAndLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, v text)", "INSERT INTO shop.thing SELECT n, 'first' FROM generate_series(0, 599) n")
	table := w.table("thing")
	stopWriters := w.writers("shop.thing", 600, 50*time.Millisecond)
	kills, before := 0, int64(0)
	for done := false; !done; {
		kill := w.spawn(50, table)
		w.snapshotBegun()
		w.eventually("a chunk more", func() (bool, any) {
			all := w.status().Tables
			if len(all) == 0 {
				return false, "no table"
			}
			s := all[0].Snapshot
			more := s.RowsRead > before
			done = s.Phase == "done"
			if s.RowsRead < before {
				w.t.Fatalf("it began again: %d rows after %d", s.RowsRead, before)
			}
			before = s.RowsRead
			return more || done, s
		})
		kill()
		kills++
		if done && kills < 3 { // a slow machine saw too little of it: another snapshot
			must(t, cdc.RequestSnapshot(t.Context(), w.db, "", "shop.thing"))
			done, before = false, 0
		}
	}
	stopWriters()
	w.spawn(50, table)
	w.settle()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
}
