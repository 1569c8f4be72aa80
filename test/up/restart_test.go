package up

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/test/proc"
)

// TestRestarts shares one Waybill: each part leaves it running.
func TestRestarts(t *testing.T) {
	w := proc.Up(t)
	t.Run("a stop in order leaves nothing running and the next start has everything", func(t *testing.T) { restart(t, w) })
	t.Run("orders placed up to the stop are published", func(t *testing.T) { stopUnderLoad(t, w) })
	t.Run("after kill -9 one Postgres serves all orders", func(t *testing.T) { killAndStart(t, w) })
	t.Run("a second one on the folder is refused", func(t *testing.T) { second(t, w) })
	t.Run("a dead Postgres ends the program", func(t *testing.T) { killPostgres(t, w) })
}

func restart(t *testing.T, w *proc.Waybill) {
	events := listen(t, w, "")
	first, key := place(t, w), w.DemoKey
	cursor := await(t, events, "the first order's event").cursor
	if cursor == "" {
		t.Fatal("an event without id: nothing to resume from")
	}
	second := place(t, w)
	if err := w.Stop(); err != nil {
		t.Fatalf("stop: %v\n%s", err, w.Output())
	}
	for range events { // an open page must not have held up the stop
	}
	checkNothingRuns(t, w)

	w.Start()
	checkThere(t, w, first, second)
	if w.DemoKey != key {
		t.Errorf("the demonstration's key was %s and is %s", key, w.DemoKey)
	}
	events = listen(t, w, cursor)
	want := []string{second, place(t, w)}
	for len(want) > 0 { // in any order: no two of them share a key
		e := await(t, events, "events after the cursor")
		i := slices.Index(want, e.Subject)
		if i < 0 {
			t.Fatalf("resumed after the first order with %+v, want %v", e, want)
		}
		want = slices.Delete(want, i, i+1)
	}
}

func stopUnderLoad(t *testing.T, w *proc.Waybill) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	events := listen(t, w, "")
	cursor := ""
	begin := place(t, w)
	for e := range events {
		if cursor = e.cursor; e.Subject == begin {
			break
		}
	}
	placed := make(chan string, 10000)
	var shops sync.WaitGroup
	for range 4 {
		shops.Go(func() {
			for ctx.Err() == nil {
				id, err := tryPlace(ctx, w)
				if err != nil {
					return // it is going down
				}
				placed <- id
			}
		})
	}
	for range 20 {
		await(t, placed, "orders")
	}
	if err := w.Stop(); err != nil {
		t.Fatalf("stop: %v\n%s", err, w.Output())
	}
	shops.Wait()
	close(placed)
	var want []string
	for id := range placed {
		want = append(want, id)
	}

	w.Start()
	checkThere(t, w, want...)
	events = listen(t, w, cursor)
	missing := slices.Clone(want)
	for len(missing) > 0 {
		e := await(t, events, strconv.Itoa(len(missing))+" orders' events")
		missing = slices.DeleteFunc(missing, func(id string) bool { return id == e.Subject })
	}
}

func killAndStart(t *testing.T, w *proc.Waybill) {
	id := place(t, w)
	w.Kill()
	if w.Postmaster() == 0 {
		t.Fatal("Postgres went with the program: this tests nothing")
	}
	w.Start()
	checkThere(t, w, id, place(t, w))
	servers := slices.DeleteFunc(processes(t, w), func(p string) bool { return !strings.Contains(p, "-D ") })
	if len(servers) != 1 || !strings.HasPrefix(servers[0], strconv.Itoa(w.Postmaster())+":") {
		t.Errorf("%d Postgres servers, want one:\n%s", len(servers), strings.Join(servers, "\n"))
	}
}

func second(t *testing.T, w *proc.Waybill) {
	args := []string{
		"up", "--no-sim", "--dir", w.Dir, "--listen", proc.Free(t), "--kafka-listen", proc.Free(t),
		"--registry-listen", proc.Free(t), "--postgres-port", "0",
	}
	for _, args := range [][]string{args, {"broker", "--dir", w.Dir}} {
		r := proc.Run(t, args...)
		if r.Code != 1 || !strings.Contains(r.Err, "pid "+strconv.Itoa(w.PID)) || !strings.Contains(r.Err, "--dir") {
			t.Errorf("waybill %s: %d\n%s", args[0], r.Code, r.Err)
		}
	}
	place(t, w) // unharmed
	if r := proc.Run(t, "outbox", "status", "--dir", w.Dir, "--json"); r.Code != 0 || !json.Valid([]byte(r.Out)) {
		t.Errorf("its addresses are gone: %+v", r)
	}
}

func killPostgres(t *testing.T, w *proc.Waybill) {
	id := place(t, w)
	endPostgres(t, w)
	if code := exitCode(t, w); code != 1 || !strings.Contains(strings.ToLower(w.Output()), "postgres") {
		t.Errorf("exit code %d\n%s", code, w.Output())
	}
	checkNothingRuns(t, w)
	w.Start()
	checkThere(t, w, id, place(t, w))
	if brokertest.Kafka() {
		return
	}
	r := proc.Run(t, "topics", "orders.events", "--dir", w.Dir)
	if r.Code != 0 {
		t.Errorf("topics after that: %+v", r)
	}
}
