package relay_test

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// pair is a primary and its standby, and a world that knows both.
type pair struct {
	*world
	primary *local.Server
	standby *pgtest.Standby
}

func newPair(t *testing.T, standby pgtest.StandbyConfig) *pair {
	t.Helper()
	p := &pair{primary: pgtest.Server(t, local.Config{})}
	p.standby = pgtest.NewStandby(t, p.primary, standby)
	p.world = newWorldOn(t, eitherOf(t, p.primary.DSN(), p.standby.Port))
	p.exec(`CREATE TABLE account (id text PRIMARY KEY, version bigint NOT NULL)`)
	for i := range accounts {
		p.exec(`INSERT INTO account VALUES ($1, 0)`, fmt.Sprintf("a%d", i))
	}
	return p
}

// eitherOf is dsn for whichever of two servers takes writes.
func eitherOf(t *testing.T, dsn string, second int) string {
	t.Helper()
	u, err := url.Parse(dsn)
	must(t, err)
	u.Host += "," + net.JoinHostPort(u.Hostname(), strconv.Itoa(second))
	u.RawQuery += "&target_session_attrs=read-write"
	return u.String()
}

const accounts = 5

// write has writers add events until it is stopped, whatever happens to the
// servers. What they were told is not kept: the truth is the promoted server's.
func (p *pair) write() (stop func()) {
	ctx, cancel := context.WithCancel(p.t.Context())
	var wg sync.WaitGroup
	for writer := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				// Not cut short: what a server does with a commit whose client
				// has left is seen too late.
				p.tryAdd(context.WithoutCancel(ctx), fmt.Sprintf("a%d", (writer+i)%accounts))
				select {
				case <-ctx.Done():
				case <-time.After(3 * time.Millisecond):
				}
			}
		})
	}
	stop = sync.OnceFunc(func() { cancel(); wg.Wait() })
	p.t.Cleanup(stop)
	return stop
}

func (p *pair) tryAdd(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = pgx.BeginFunc(ctx, p.db, func(tx pgx.Tx) error {
		var v int64
		if err := tx.QueryRow(ctx, `UPDATE account SET version = version + 1 WHERE id = $1 RETURNING version`, id).Scan(&v); err != nil {
			return err
		}
		return p.ob.Add(tenant(ctx), tx, noted{contract: p.contract, Account: id, N: v})
	})
}

// moreMarks waits until the server that takes writes has n more marks than now.
func (p *pair) moreMarks(n int) {
	p.t.Helper()
	goal := -1
	p.eventually(func() (bool, string) {
		var marks int
		err := p.db.QueryRow(p.t.Context(), `SELECT count(*) FROM waybill.outbox_published`).Scan(&marks)
		if err == nil && goal < 0 {
			goal = marks + n
		}
		return err == nil && marks >= goal, fmt.Sprintf("%d marks, want %d; %v", marks, goal, err)
	})
}

// failOver kills the primary under load, promotes the standby and waits until
// the relay publishes what that takes.
func (p *pair) failOver() {
	p.t.Helper()
	stop := p.write()
	p.moreMarks(100)
	pgtest.Crash(p.t, p.primary)
	began := time.Now()
	p.standby.Promote(p.t)
	p.moreMarks(100)
	p.t.Logf("a hundred events were published within %s of the primary's end", time.Since(began).Round(time.Millisecond))
	stop()
}

// rows are the events the promoted server has: sequence by id, for each key.
func (p *pair) rows() map[string]int64 {
	p.t.Helper()
	rows, err := p.db.Query(p.t.Context(), `SELECT id::text, sequence FROM waybill.outbox_events`)
	must(p.t, err)
	out := map[string]int64{}
	var id string
	var n int64
	_, err = pgx.ForEachRow(rows, []any{&id, &n}, func() error {
		out[id] = n
		return nil
	})
	must(p.t, err)
	return out
}

// check: all the promoted server has is in the log, each key in order. The
// number of those is given that are in the log and that it does not have.
func (p *pair) check() (unknown int) {
	p.t.Helper()
	rows := p.rows()
	p.marked(len(rows))
	seen := map[string]bool{}
	order := map[string][]int64{}
	for _, r := range p.read(len(rows)) {
		id := idOf(r)
		n, ok := rows[id]
		switch {
		case seen[id]:
		case !ok:
			unknown++
		default:
			order[string(r.Key)] = append(order[string(r.Key)], n)
		}
		seen[id] = true
	}
	for id := range rows {
		if !seen[id] {
			p.t.Errorf("event %s is on the promoted server and not in the log", id)
		}
	}
	for key, ns := range order {
		if !slices.IsSorted(ns) {
			p.t.Errorf("%s: %v", key, ns)
		}
	}
	p.t.Logf("%d events, %d the promoted server does not have", len(rows), unknown)
	return unknown
}

func (p *pair) admin(dsn, sql string, args ...any) error {
	conn, err := pgx.Connect(p.t.Context(), dsn)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.Background()) }()
	_, err = conn.Exec(p.t.Context(), sql, args...)
	return err
}

// The standby has a copy of the slot. Once promoted, the relay goes on there
// where it was, and since it waited for the standby it has published nothing
// that the standby does not know.
func TestRelayGoesOnFromTheSlotOfThePromotedStandby(t *testing.T) {
	needFailoverSlots(t)
	p := newPair(t, pgtest.StandbyConfig{SyncSlots: true})
	must(t, p.admin(p.primary.AdminDSN(), `ALTER SYSTEM SET synchronized_standby_slots = 'pgtest_standby'`))
	must(t, p.admin(p.primary.AdminDSN(), `SELECT pg_reload_conf()`))
	log, _ := p.loudRelay()
	p.add("first", 1)
	p.read(1)
	p.synced()
	p.failOver()
	if unknown := p.check(); unknown != 0 {
		t.Errorf("%d events were published that the promoted server does not have", unknown)
	}
	if n := log.count("slot is gone") + log.count("slot is lost"); n != 0 {
		t.Errorf("the relay did not go on from the copy of its slot:\n%s", strings.Join(log.lines, ""))
	}
}

// needFailoverSlots skips what Postgres can do from 17 on.
func needFailoverSlots(t *testing.T) {
	t.Helper()
	if pgtest.Major(t) < 17 {
		t.Skip("on Postgres 17 and later: run by make test-failover")
	}
}

// synced waits until the standby's copy of the slot would survive a promotion.
func (p *pair) synced() {
	p.t.Helper()
	conn, err := pgx.Connect(p.t.Context(), p.standby.AdminDSN())
	must(p.t, err)
	defer func() { _ = conn.Close(context.Background()) }()
	p.eventually(func() (ok bool, why string) {
		// What the copy waits for is noted every 15 s otherwise.
		must(p.t, p.admin(p.primary.AdminDSN(), `SELECT pg_log_standby_snapshot()`))
		must(p.t, conn.QueryRow(p.t.Context(), `SELECT EXISTS (SELECT FROM pg_replication_slots
			WHERE slot_type = 'logical' AND synced AND NOT temporary AND invalidation_reason IS NULL)`).Scan(&ok))
		return ok, "the standby has no copy of the slot"
	})
}

// A standby that copies no slots, as all before 17: the relay makes a new slot,
// says so, and publishes from the table what has no mark there.
func TestFailoverWithoutTheSlotLosesNothingAndIsTold(t *testing.T) {
	p := newPair(t, pgtest.StandbyConfig{})
	log, _ := p.loudRelay()
	p.add("first", 1)
	p.read(1)
	p.eventually(func() (ok bool, why string) { // that the slot was complete is known there
		conn, err := pgx.Connect(t.Context(), p.standby.AdminDSN())
		must(t, err)
		defer func() { _ = conn.Close(context.Background()) }()
		must(t, conn.QueryRow(t.Context(), `SELECT EXISTS (SELECT FROM waybill.outbox_slots)`).Scan(&ok))
		return ok, "the standby does not follow"
	})
	p.failOver()
	p.check()
	if log.count("level=ERROR", "slot is gone") != 1 {
		t.Errorf("the relay did not say that its slot is gone:\n%s", strings.Join(log.lines, ""))
	}
}

// A slot from before: made by an older relay, or kept through pg_upgrade.
func TestSlotFromBeforeFollowsFailoversToo(t *testing.T) {
	needFailoverSlots(t)
	srv := pgtest.Server(t, local.Config{})
	w := newWorldOn(t, srv.DSN())
	w.exec(`SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, relay.SlotName(w.db.Config().ConnConfig.Database))
	log, stop := w.loudRelay()
	w.add("a", 1)
	w.read(1)
	w.told(log, 1, "level=INFO", "now follows a failover")
	var failover bool
	must(t, w.db.QueryRow(t.Context(), `SELECT failover FROM pg_replication_slots`).Scan(&failover))
	if !failover {
		t.Error("the slot does not follow a failover")
	}
	stop()
	_, stop = w.loudRelay() // a second relay has nothing to do
	w.add("a", 2)
	w.read(2)
	stop()
}

// A relay that lost its slot in the middle of a back-fill must not call the
// next slot complete: what committed in between is in neither.
func TestRelayThatLostItsSlotDoesNotCallTheNextOneComplete(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	slot := relay.SlotName(w.db.Config().ConnConfig.Database)
	// No mark can be written: the back-fill does not come to its end.
	hold, err := w.db.Begin(t.Context())
	must(t, err)
	defer func() { _ = hold.Rollback(context.Background()) }()
	_, err = hold.Exec(t.Context(), `LOCK TABLE waybill.outbox_published IN EXCLUSIVE MODE`)
	must(t, err)
	w.add("a", 1)
	w.loudRelay()
	w.read(1)
	// The slot goes, an event comes, and there is a slot again.
	w.eventually(func() (bool, string) {
		w.exec(`SELECT pg_terminate_backend(active_pid, 5000) FROM pg_replication_slots WHERE slot_name = $1 AND active`, slot)
		_, err := w.db.Exec(t.Context(), `SELECT pg_drop_replication_slot($1)`, slot)
		return err == nil, fmt.Sprint(err)
	})
	w.add("a", 2)
	w.exec(`SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, slot)
	must(t, hold.Commit(t.Context()))
	w.add("a", 3)
	if got, _ := story(t, w.read(3)); !slices.Equal(got["a"], []int64{1, 2, 3}) {
		t.Errorf("published %v", got["a"])
	}
}
