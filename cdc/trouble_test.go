package cdc_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/cdc"
)

func (w *world) slot() string { return cdc.SlotName(w.db.Config().ConnConfig.Database) }

func (w *world) dropSlot() {
	w.eventually("the slot is free", func() (bool, any) {
		_, err := w.db.Exec(context.Background(), "SELECT pg_drop_replication_slot($1)", w.slot())
		return err == nil, err
	})
}

// lossy is a table whose stream misses an insert, an update and a deletion.
func (w *world) lossy() (table cdc.Table, stop func(), miss func()) {
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, v text)", "INSERT INTO shop.thing SELECT n, 'a' FROM generate_series(1, 30) n")
	table = w.table("thing")
	stop = w.run(table)
	return table, stop, func() {
		w.exec("DELETE FROM shop.thing WHERE id <= 5", "UPDATE shop.thing SET v = 'b' WHERE id = 10", "INSERT INTO shop.thing VALUES (31, 'c')")
	}
}

func TestSlotThatIsGoneIsMadeAnewAndNothingIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	table, stop, miss := w.lossy()
	stop()
	w.dropSlot()
	miss()
	reg := prometheus.NewRegistry()
	cfg := w.config(table)
	cfg.Registerer = reg
	w.start(w.new(cfg))
	w.eventually("a new slot is there", func() (bool, any) { s := w.status().Slot; return s.Exists && s.Losses == 1, s })
	w.settle()
	w.exec("UPDATE shop.thing SET v = 'd' WHERE id = 12")
	w.confirmed()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
	if !w.hasIncident("slot lost", "the slot is gone") || !w.logged.has(slog.LevelError, "missed") || gauge(t, reg, "waybill_cdc_slot_losses_total") != 1 {
		t.Errorf("it was not told: %+v\n%s", w.incidents(), w.logged.last())
	}
	if s := w.status().Tables[0].Snapshot; s.Deleted != 5 || s.RowsRead != 26 {
		t.Errorf("snapshot %+v", s)
	}
}

// gauge is the sum of a metric's values.
func gauge(t *testing.T, reg *prometheus.Registry, name string) (sum float64) {
	t.Helper()
	all, err := reg.Gather()
	must(t, err)
	for _, f := range all {
		if f.GetName() == name {
			for _, m := range f.GetMetric() {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

func TestPublicationThatIsGoneIsMadeAnewAndNothingIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	table, _, miss := w.lossy()
	w.exec("DROP PUBLICATION waybill_cdc")
	miss()
	w.eventually("it is told", func() (bool, any) { return w.hasIncident("slot lost", "publication"), w.logged.last() })
	w.eventually("the topic is the table", func() (bool, any) {
		w.settle()
		diff := difference(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
		return diff == "", diff
	})
}

func TestTableThatSomebodyTookOutIsPublishedAgainAndNothingIsLost(t *testing.T) {
	t.Parallel()
	for what, sql := range map[string][]string{
		"taken out":  {"ALTER PUBLICATION waybill_cdc DROP TABLE shop.thing"},
		"operations": {"ALTER PUBLICATION waybill_cdc SET (publish = 'insert')"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			table, _, miss := w.lossy()
			w.exec(sql...)
			miss()
			w.eventually("it is told", func() (bool, any) { return w.hasIncident("table read again", "publication"), w.logged.last() })
			w.settle()
			w.exec("UPDATE shop.thing SET v = 'd' WHERE id = 12", "DELETE FROM shop.thing WHERE id = 13")
			w.confirmed()
			w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
		})
	}
}

func TestValuesTooLargeForARecordAreLeftOutByName(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, small text, doc text, other text)", "ALTER TABLE shop.thing REPLICA IDENTITY FULL",
		"INSERT INTO shop.thing VALUES (1, 'r', repeat('x', 900000), repeat('y', 900000))")
	table := w.table("thing")
	w.run(table)
	w.exec("INSERT INTO shop.thing VALUES (2, 'c', repeat('x', 600000), '')", "UPDATE shop.thing SET small = 'u' WHERE id = 2",
		"UPDATE shop.thing SET doc = repeat('x', 1100000) WHERE id = 2", "UPDATE shop.thing SET doc = 'fits' WHERE id = 2", "DELETE FROM shop.thing WHERE id = 2")
	w.tells(table.Topic,
		"1 r - (id=1 other=yyyyyyyy small=r) omitted [after.doc]",
		"2 c - (doc=xxxxxxxx id=2 other= small=c)",
		"2 u (id=2 other= small=c) (doc=xxxxxxxx id=2 other= small=u) omitted [before.doc]",
		"2 u (id=2 other= small=u) (id=2 other= small=u) omitted [before.doc after.doc]",
		"2 u (id=2 other= small=u) (doc=fits id=2 other= small=u) omitted [before.doc]",
		"2 d (doc=fits id=2 other= small=u) -", "2 tombstone")
	if !w.hasIncident("value omitted", "shop.thing") || !w.logged.has(slog.LevelError, "larger than") {
		t.Error("it was not told")
	}
}

// A broker that takes less than we were told is given less, and nothing stops.
func TestTopicThatTakesLessGetsSmallerEvents(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, doc text)")
	table := w.table("thing")
	limit := "60000"
	_, err := kadm.NewClient(w.engine.Client(t)).CreateTopic(t.Context(), 3, -1, map[string]*string{"max.message.bytes": &limit}, table.Topic)
	must(t, err)
	w.run(table)
	w.exec("INSERT INTO shop.thing VALUES (1, repeat('x', 200000))", "INSERT INTO shop.thing VALUES (2, repeat('x', 20000))")
	w.confirmed()
	got := map[string]string{}
	for _, e := range w.told(table.Topic) {
		got[string(e.Key)] = line(e)
	}
	if got["1"] != "1 c - (id=1) omitted [after.doc]" || got["2"] != "2 c - (doc=xxxxxxxx id=2)" {
		t.Errorf("told %v\n%s", got, w.logged.last())
	}
	if !w.hasIncident("value omitted", "takes less") {
		t.Errorf("incidents %+v", w.incidents())
	}
}

func TestQuietTablesBesideABusyOneHoldNoWAL(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY)", "CREATE TABLE shop.busy (id int)")
	w.run(w.table("thing"))
	for range 3 {
		w.exec("INSERT INTO shop.busy SELECT generate_series(1, 20000)")
		w.confirmed()
	}
}

func TestSecondProcessWaitsAndTakesOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY)")
	table := w.table("thing")
	first := w.run(table)
	w.start(w.new(w.config(table)))
	w.eventually("the second one waits", func() (bool, any) { return w.logged.has(slog.LevelInfo, "standing by"), w.logged.last() })
	w.exec("INSERT INTO shop.thing VALUES (1)")
	first()
	w.exec("INSERT INTO shop.thing VALUES (2)")
	w.confirmed()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
}

func TestConfigurationThatCannotBeMeantIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	good := cdc.Table{Schema: "s", Name: "t", Columns: []string{"id"}, Topic: "topic"}
	with := func(change func(*cdc.Table)) cdc.Table {
		bad := good
		change(&bad)
		return bad
	}
	for say, tables := range map[string][]cdc.Table{
		"schema and name": {with(func(t *cdc.Table) { t.Schema = "" })},
		"want a topic":    {with(func(t *cdc.Table) { t.Topic = "" })},
		"allow-list":      {with(func(t *cdc.Table) { t.Columns = nil })},
		"stands alone":    {with(func(t *cdc.Table) { t.Columns = []string{"*", "id"} })},
		"twice":           {good, good},
		"one table":       {good, with(func(t *cdc.Table) { t.Name = "u" })},
	} {
		if err := w.new(cdc.Config{Tables: tables}).Run(t.Context()); err == nil || !strings.Contains(err.Error(), say) {
			t.Errorf("%v, want it to say %q", err, say)
		}
	}
}

func TestStatusAndMetricsTellHowFarASnapshotIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY)", "INSERT INTO shop.thing SELECT generate_series(1, 2000)", "ANALYZE shop.thing")
	reg := prometheus.NewRegistry()
	cfg := w.config(w.table("thing"))
	cfg.Registerer, cfg.ChunkRows = reg, 10
	w.start(w.new(cfg))
	w.eventually("it is on its way", func() (bool, any) {
		s := w.status()
		return len(s.Tables) == 1 && s.Tables[0].Snapshot.Phase == "reading" && s.Tables[0].Snapshot.RowsRead > 0, s
	})
	if total := w.status().Tables[0].Snapshot.RowsTotal; total == nil || *total != 2000 {
		t.Errorf("estimate %v", total)
	}
	w.settle()
	for name, want := range map[string]float64{
		"waybill_cdc_snapshot_rows": 2000, "waybill_cdc_snapshot_rows_estimated": 2000, "waybill_cdc_events_total": 2000,
		"waybill_cdc_suspended_tables": 0, "waybill_cdc_slot_losses_total": 0,
	} {
		w.eventually(name, func() (bool, any) { got := gauge(t, reg, name); return got == want, fmt.Sprint(got, ", want ", want) })
	}
}

// gate lets nothing through to the broker while it is shut.
type gate struct {
	mu   sync.Mutex
	shut bool
	wake chan struct{} // closed when it opens
}

func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut, g.wake = true, make(chan struct{})
}

func (g *gate) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = false
	close(g.wake)
}

func (g *gate) dial(ctx context.Context, network, host string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, host)
	return &gated{Conn: conn, gate: g, closed: make(chan struct{})}, err
}

type gated struct {
	net.Conn
	gate   *gate
	closed chan struct{}
	once   sync.Once
}

func (c *gated) Write(b []byte) (int, error) {
	c.gate.mu.Lock()
	shut, wake := c.gate.shut, c.gate.wake
	c.gate.mu.Unlock()
	if shut {
		select {
		case <-wake:
		case <-c.closed:
		}
	}
	return c.Conn.Write(b)
}

func (c *gated) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

func TestWhatTheBrokerDidNotAcknowledgeIsToldAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY)")
	table := w.table("thing")
	var g gate
	reg := prometheus.NewRegistry()
	cfg := w.config(table)
	cfg.Registerer, cfg.Check = reg, time.Hour
	stop := w.start(cdc.New(w.db, func(opts ...kgo.Opt) (*kgo.Client, error) {
		return w.engine.Config.Client(append(opts, kgo.Dialer(g.dial))...)
	}, w.registry, cfg))
	w.settle()
	g.close()
	for n := range 20 {
		w.exec(fmt.Sprintf("INSERT INTO shop.thing VALUES (%d)", n))
	}
	w.eventually("all is read", func() (bool, any) {
		n := gauge(t, reg, "waybill_cdc_in_flight_records")
		return n == 20, n
	})
	stop() // which gives up on the broker
	g.open()
	w.start(w.new(w.config(table)))
	w.settle()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
}

func TestWhatIsInFlightIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY, doc text)", "INSERT INTO shop.thing SELECT n, repeat('x', 1000) FROM generate_series(1, 500) n")
	table := w.table("thing")
	reg := prometheus.NewRegistry()
	cfg := w.config(table)
	cfg.Registerer, cfg.MaxInFlight, cfg.MaxBytes = reg, 100, 20_000
	w.start(w.new(cfg))
	w.settle()
	w.exec("UPDATE shop.thing SET doc = repeat('y', 1000)", "DELETE FROM shop.thing WHERE id > 250")
	w.confirmed()
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
}

func TestDroppedItLeavesNothingAndCanBeginAnew(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.exec("CREATE TABLE shop.thing (id int PRIMARY KEY)", "INSERT INTO shop.thing VALUES (1), (2)")
	table := w.table("thing")
	stop := w.run(table)
	if err := cdc.Drop(t.Context(), w.db, "", ""); !errors.Is(err, cdc.ErrInUse) {
		t.Errorf("dropped while it runs: %v", err)
	}
	stop()
	w.eventually("it is dropped", func() (bool, any) { err := cdc.Drop(context.Background(), w.db, "", ""); return err == nil, err })
	if s := w.status(); s.Slot.Exists || len(s.Tables) > 0 || len(w.incidents()) > 0 {
		t.Errorf("left: %+v %+v", s, w.incidents())
	}
	w.exec("DELETE FROM shop.thing WHERE id = 1")
	w.run(table)
	w.same(w.rebuilt(table.Topic), w.rows("shop.thing", "id::text"))
	if len(w.incidents()) > 0 {
		t.Errorf("incidents %+v", w.incidents())
	}
}
