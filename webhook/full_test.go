package webhook

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/incident"
)

func TestWhatWaitsForAnEndpointIsBounded(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	url, _ := stalled(t)
	e, other := w.create("ana", url), w.create("rui", url)
	cfg := quick
	cfg.MaxWaiting, cfg.Timeout, cfg.Drain = 50, time.Hour, time.Millisecond
	s, _ := w.run(cfg)
	events := func(tenant string, n int) (out []Event) {
		for range n {
			out = append(out, anEvent(tenant, "a"))
		}
		return out
	}
	w.fan(events("ana", 49)...)
	w.fan(events("rui", 10)...)
	full := func() bool {
		w.must(s.measure(ctx))
		return w.count(`SELECT count(*) FROM webhook.endpoints WHERE is_full AND id = $1`, e.ID) == 1
	}
	w.until("it has the endpoints", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.lanes) == 2
	})
	if full() {
		t.Error("it is full one before it is")
	}
	w.fan(events("ana", 3)...)
	w.until("it is full", full)
	late := anEvent("ana", "a")
	w.fan(late)
	w.fan(events("rui", 1)...)
	if d := w.delivery(e, late.ID); d.State != Failed || len(d.Log) != 1 || d.NextAt != nil || d.FinishedAt == nil {
		t.Errorf("%+v", d)
	}
	if n := w.count(pendingSQL, other.ID); n != 11 {
		t.Errorf("%d wait for another endpoint, want all 11", n)
	}
	seen, err := incident.List(ctx, w.db, time.Time{}, 10)
	if err != nil || len(seen) != 1 || seen[0].Kind != "endpoint full" {
		t.Errorf("%+v, %v", seen, err)
	}
	// It is worked off.
	w.must(asOperator(ctx, w.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `DELETE FROM webhook.due WHERE endpoint = $1`, e.ID)
		return err
	}))
	w.until("it is not full any more", func() bool { return !full() })
	page, err := w.store.Replay(ctx, "ana", e.ID, Replay{Failed: true})
	if err != nil || page.Count != 1 {
		t.Errorf("%+v, %v", page, err)
	}
}

// However little memory there is for bodies, all are sent.
func TestBodiesInMemoryAreBounded(t *testing.T) {
	w := newWorld(t)
	r := newReceiver(t, 200)
	var events []Event
	for i := range 20 {
		tenant := fmt.Sprint("tenant ", i)
		w.create(tenant, r.URL)
		for range 20 {
			ev := anEvent(tenant, "a")
			ev.Body = make([]byte, 10_000)
			events = append(events, ev)
		}
	}
	w.fan(events...)
	cfg := quick
	cfg.MaxHeld = 1
	s, _ := w.run(cfg)
	most := 0
	w.until("all", func() bool {
		s.mu.Lock()
		most = max(most, s.held)
		s.mu.Unlock()
		return r.distinct() == len(events)
	})
	if most > 2*claimBodies*10_000 {
		t.Errorf("%d bytes were held", most)
	}
	w.until("none is held", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.held == 0
	})
}

// Every table with a tenant is walled off, its partitions too.
func TestEveryTableIsWalled(t *testing.T) {
	w := newWorld(t)
	rows, err := w.db.Query(t.Context(), `SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'webhook'::regnamespace AND c.relkind IN ('r', 'p')
		AND EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'tenant')
		AND NOT (c.relrowsecurity AND c.relforcerowsecurity AND EXISTS (SELECT FROM pg_policy p WHERE p.polrelid = c.oid))`)
	w.must(err)
	open, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil || len(open) > 0 {
		t.Errorf("%v are not, %v", open, err)
	}
}
