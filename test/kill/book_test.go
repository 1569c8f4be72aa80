package kill

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/test/proc"
)

// book holds what the program says against what must be.
type book struct {
	t  *testing.T
	w  *proc.Waybill
	db *pgx.Conn

	orders   map[string]int64 // version by order, from the table
	events   map[string][]int64
	ids      map[uuid.UUID]bool
	repeated int
}

func open(t *testing.T, w *proc.Waybill) *book {
	t.Helper()
	db, err := pgx.Connect(t.Context(), w.Database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close(context.Background()) })
	b := &book{t: t, w: w, db: db, orders: map[string]int64{}, events: map[string][]int64{}, ids: map[uuid.UUID]bool{}}
	// The tables are row-level secured: look as the one tenant there is.
	b.exec(`SELECT set_config($1, $2, false)`, pg.TenantSetting, proc.DemoTenant.String())
	return b
}

func (b *book) exec(sql string, args ...any) {
	b.t.Helper()
	if _, err := b.db.Exec(b.t.Context(), sql, args...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *book) number(sql string, args ...any) (n int64) {
	b.t.Helper()
	if err := b.db.QueryRow(b.t.Context(), sql, args...).Scan(&n); err != nil {
		b.t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// settle waits until everything is published and handled.
func (b *book) settle() {
	b.t.Helper()
	deadline := time.Now().Add(3 * time.Minute)
	for {
		backlog := b.number(`SELECT count(*) FROM waybill.outbox_events e WHERE NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id)`)
		unhandled := b.number(`SELECT count(*) FROM waybill.outbox_events e WHERE topic = 'orders.events' AND NOT EXISTS (SELECT FROM waybill.inbox i WHERE i.event_id = e.id AND i.group_name = 'analytics')`)
		if backlog == 0 && unhandled == 0 {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatalf("after three minutes %d events are unpublished and %d unhandled\n%s", backlog, unhandled, b.w.Output())
		}
		pause(b.t.Context(), 50*time.Millisecond)
	}
}

// checkAnswered: what a customer was told stands in the table.
func (b *book) checkAnswered(answered map[string]int64) {
	b.t.Helper()
	rows, err := b.db.Query(b.t.Context(), `SELECT id::text, version FROM orders.orders`)
	if err != nil {
		b.t.Fatal(err)
	}
	var id string
	var version int64
	if _, err := pgx.ForEachRow(rows, []any{&id, &version}, func() error {
		b.orders[id] = version
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
	for id, version := range answered {
		if b.orders[id] < version {
			b.t.Errorf("order %s was answered at version %d, the table has %d", id, version, b.orders[id])
		}
	}
	if extra := len(b.orders) - len(answered); extra > 8 {
		b.t.Errorf("%d orders nobody placed", extra) // up to one a customer may have been in flight at the end
	}
}

// checkLog: every committed event is there, none else, in order per order.
func (b *book) checkLog() {
	b.t.Helper()
	b.readLog()
	for id, version := range b.orders {
		got := b.events[id]
		if int64(len(got)) != version {
			b.t.Errorf("order %s has version %d and events %v", id, version, got)
			continue
		}
		for i, v := range got {
			if v != int64(i+1) {
				b.t.Errorf("events of order %s are out of order: %v", id, got)
				break
			}
		}
	}
	for id := range b.events {
		if _, ok := b.orders[id]; !ok {
			b.t.Errorf("the log has events of order %s, which does not exist", id)
		}
	}
	if n := b.number(`SELECT count(*) FROM waybill.outbox_events WHERE topic = 'orders.events'`); n != int64(len(b.ids)) {
		b.t.Errorf("outbox has %d events, the log %d", n, len(b.ids))
	}
	b.t.Logf("%d orders, %d events, %d of them twice in the log", len(b.orders), len(b.ids), b.repeated)
}

func (b *book) readLog() {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), time.Minute)
	defer cancel()
	cl, err := broker.Config{Brokers: []string{b.w.Kafka}}.Client(
		kgo.ConsumeTopics("orders.events"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		b.t.Fatal(err)
	}
	defer cl.Close()
	infos, err := broker.ListTopics(ctx, cl, "orders.events")
	if err != nil || len(infos) != 1 || infos[0].Records == nil {
		b.t.Fatalf("list topics: %v %v", infos, err)
	}
	for left := *infos[0].Records; left > 0; {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			b.t.Fatalf("%d records of the log cannot be read", left)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			left--
			b.enter(r)
		})
	}
}

func (b *book) enter(r *kgo.Record) {
	env, err := event.ReadHeaders(len(r.Headers), func(i int) (string, []byte) {
		return r.Headers[i].Key, r.Headers[i].Value
	}, r.Timestamp, "")
	if err != nil {
		b.t.Errorf("record %d@%d: %v", r.Partition, r.Offset, err)
		return
	}
	if b.ids[env.ID] {
		b.repeated++
		return
	}
	b.ids[env.ID] = true
	b.events[string(r.Key)] = append(b.events[string(r.Key)], env.Sequence)
}

// checkReadModel: counted once for each fact, neither more nor less.
func (b *book) checkReadModel() {
	b.t.Helper()
	rows, err := b.db.Query(b.t.Context(), `
		SELECT coalesce(t.state, m.state), coalesce(t.n, 0), coalesce(m.count, 0)
		FROM (SELECT state, count(*) AS n FROM orders.orders GROUP BY state) t
		FULL JOIN (SELECT state, count FROM analytics.orders_by_state WHERE count <> 0) m USING (state)`)
	if err != nil {
		b.t.Fatal(err)
	}
	var state string
	var table, model int64
	if _, err := pgx.ForEachRow(rows, []any{&state, &table, &model}, func() error {
		if table != model {
			b.t.Errorf("%s: %d orders in the table, %d in the read model", state, table, model)
		}
		return nil
	}); err != nil {
		b.t.Fatal(err)
	}
}

// checkInbox: each event was claimed once by the group and none is parked.
func (b *book) checkInbox() {
	b.t.Helper()
	claims := b.number(`SELECT count(*) FROM waybill.inbox i JOIN waybill.outbox_events e ON e.id = i.event_id
		WHERE i.group_name = 'analytics' AND e.topic = 'orders.events'`)
	if claims != int64(len(b.ids)) {
		b.t.Errorf("%d claims in the inbox, %d events", claims, len(b.ids))
	}
	if n := b.number(`SELECT count(*) FROM waybill.parked`); n != 0 {
		b.t.Errorf("%d events are parked", n)
	}
}
