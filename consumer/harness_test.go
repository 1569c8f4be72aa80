package consumer

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// Tests that run in parallel wait more than they work: there may be more of
// them than cores, unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("6"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// moved is the nth movement of an account.
type moved struct {
	Account string `avro:"account"`
	N       int64  `avro:"n"`
}

const movedSchema = `{"type":"record","name":"Moved","namespace":"test.accounts",
	"fields":[{"name":"account","type":"string"},{"name":"n","type":"long"}]}`

var movedContract = event.MustContract("accounts.events", "/accounts", movedSchema)

func (moved) EventContract() *event.Contract { return movedContract }
func (m moved) EventKey() string             { return m.Account }
func (m moved) EventSequence() int64         { return m.N }

// plain reads bare Avro: what the registry adds is its own package's to test.
type plain struct{}

func (plain) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, err := reader.Decode(value, into)
	return err
}

// world is a database with a table of effects, a broker and one topic.
type world struct {
	t        testing.TB
	engine   *brokertest.Engine
	dsn      string
	db       *pgxpool.Pool // of the test itself
	producer *kgo.Client
	contract event.Contract
	group    string
	sent     map[string]int64
	metrics  *prometheus.Registry // for whom a test gives it to
}

func newWorld(t testing.TB, partitions int32) *world {
	t.Helper()
	return newWorldOn(t, partitions, pgtest.Like(t, "consumer", prepare))
}

func newWorldOn(t testing.TB, partitions int32, dsn string) *world {
	t.Helper()
	w := &world{t: t, engine: brokertest.New(t), dsn: dsn, contract: *movedContract, sent: map[string]int64{}, metrics: prometheus.NewRegistry()}
	w.db = openPool(t, w.dsn, nil)
	if w.number(`SELECT count(*) FROM pg_class WHERE relname = 'effect'`) == 0 {
		if err := prepare(t.Context(), dsn); err != nil {
			t.Fatal(err)
		}
	}
	w.producer = w.engine.Client(t, kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)), kgo.ProducerLinger(0))
	w.contract.Topic, w.group = brokertest.Topic(t, "accounts"), brokertest.Group(t, "ledger")
	w.declare(partitions)
	return w
}

// prepare makes the tables of a world.
func prepare(ctx context.Context, dsn string) error {
	db, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := Migrate(ctx, db); err != nil {
		return err
	}
	_, err = db.Exec(ctx, `CREATE TABLE effect (serial bigserial, key text, n bigint, tenant text, correlation text)`)
	return err
}

func (w *world) declare(partitions int32) {
	w.t.Helper()
	err := broker.Declare(w.t.Context(), w.producer, w.engine.Capabilities, broker.Topic{Name: w.contract.Topic, Partitions: partitions})
	if err != nil {
		w.t.Fatal(err)
	}
}

func openPool(t testing.TB, dsn string, v *valve) *pgxpool.Pool {
	t.Helper()
	return openPoolOf(t, dsn, v, 0)
}

func openPoolOf(t testing.TB, dsn string, v *valve, conns int32) *pgxpool.Pool {
	t.Helper()
	cfg, err := pgxpool.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = 12
	if conns > 0 {
		cfg.MaxConns = conns
	}
	if v != nil {
		cfg.ConnConfig.DialFunc = v.dial
	}
	db, err := pgxpool.NewWithConfig(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) number(sql string, args ...any) (n int64) {
	w.t.Helper()
	if err := w.db.QueryRow(w.t.Context(), sql, args...).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

// record is the next movement of key.
func (w *world) record(key string) *kgo.Record {
	w.sent[key]++
	return w.recordOf(moved{key, w.sent[key]})
}

func (w *world) recordOf(m moved) *kgo.Record {
	ctx := event.WithTenant(context.Background(), "tenant-of-"+m.Account)
	env := w.contract.Envelope(ctx, m, time.Now())
	value, err := w.contract.Schema.Encode(m)
	if err != nil {
		w.t.Fatal(err)
	}
	rec := &kgo.Record{Topic: w.contract.Topic, Key: []byte(m.Account), Value: value}
	env.Headers(func(k, v string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: k, Value: []byte(v)})
	})
	return rec
}

func (w *world) publish(recs ...*kgo.Record) {
	w.t.Helper()
	if err := w.producer.ProduceSync(w.t.Context(), recs...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

// move publishes the next movements of the keys, in that order.
func (w *world) move(keys ...string) {
	w.t.Helper()
	recs := make([]*kgo.Record, len(keys))
	for i, k := range keys {
		recs[i] = w.record(k)
	}
	w.publish(recs...)
}

// keep is a handler that makes one effect.
func keep(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
	_, err := tx.Exec(ctx, `INSERT INTO effect (key, n, tenant, correlation) VALUES ($1, $2, $3, $4)`,
		e.Data.Account, e.Data.N, event.Tenant(ctx), event.Correlation(ctx))
	return err
}

// member is a running member of the group.
type member struct {
	group *Group
	stop  context.CancelFunc
	done  chan struct{}
	db    *pgxpool.Pool
	err   error
}

// quickRetry is impatient, and gives nothing up.
var quickRetry = Retry{
	Pause: 10 * time.Millisecond, Within: 200 * time.Millisecond,
	Park: 50 * time.Millisecond, ParkFactor: 2, ParkMax: 200 * time.Millisecond, ParkAttempts: 1 << 20,
}

type setup struct {
	cfg   Config
	valve *valve
	opts  []kgo.Opt
	conns int32 // 0: enough

	handlers func(*Group, *event.Contract) // instead of the one that is given
}

func (w *world) start(h Handler[moved], change ...func(*setup)) *member {
	w.t.Helper()
	return w.startDecoding(plain{}, h, change...)
}

func (w *world) startDecoding(d Decoder, h Handler[moved], change ...func(*setup)) *member {
	w.t.Helper()
	s := setup{cfg: Config{
		Group: w.group, FlushEvery: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		Retry: quickRetry,
	}}
	// So all tests may run where the broker assigns. Members that are killed hold
	// their partitions for 45 s then.
	if os.Getenv("WAYBILL_TEST_PROTOCOL") == "server-side" {
		s.cfg.Protocol = ServerSide
	}
	for _, f := range change {
		f(&s)
	}
	db := openPoolOf(w.t, w.dsn, s.valve, s.conns)
	g := New(Deps{DB: db, Decoder: d, Client: func(opts ...kgo.Opt) (*kgo.Client, error) {
		return w.engine.Config.Client(append(opts, s.opts...)...)
	}}, s.cfg)
	c := w.contract
	if s.handlers != nil {
		s.handlers(g, &c)
	} else {
		on(g, &c, h)
	}
	ctx, stop := context.WithCancel(context.WithoutCancel(w.t.Context()))
	m := &member{group: g, stop: stop, done: make(chan struct{}), db: db}
	go func() {
		defer close(m.done)
		m.err = g.Run(ctx)
	}()
	w.t.Cleanup(func() { m.end(w.t) })
	return m
}

func (m *member) end(t testing.TB) {
	t.Helper()
	m.stop()
	select {
	case <-m.done:
	case <-time.After(2 * time.Minute):
		t.Fatal("Run did not return")
	}
	if m.err != nil {
		t.Error(m.err)
	}
	m.db.Close()
}

// until waits for a condition of the world outside.
func (w *world) until(what string, cond func() bool) {
	w.t.Helper()
	limit := time.After(3 * time.Minute) // a loaded machine is slow
	for !cond() {
		select {
		case <-limit:
			w.t.Fatalf("never: %s\n%s", what, w.state())
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// state is what a person wants to see of a world that hangs.
func (w *world) state() string {
	out := fmt.Sprintf("sent %v, %d members\n", w.sent, w.members())
	for _, sql := range []string{
		`SELECT key, count(*), max(n) FROM effect GROUP BY key ORDER BY key`,
		`SELECT topic_id, partition, next_offset FROM waybill.watermark ORDER BY 2`,
		`SELECT seq, partition, "offset", encode(key, 'escape'), sequence, state, attempts, next_at - now() FROM waybill.parked ORDER BY seq LIMIT 20`,
		`SELECT pid, state, now() - xact_start, left(query, 60) FROM pg_stat_activity WHERE datname = current_database()`,
	} {
		rows, err := w.db.Query(w.t.Context(), sql)
		if err != nil {
			return out + err.Error()
		}
		for rows.Next() {
			v, err := rows.Values()
			out += fmt.Sprintln(v, err)
		}
		out += "\n"
	}
	return out
}

func (w *world) total() (n int64) {
	for _, k := range w.sent {
		n += k
	}
	return n
}

// settled waits until every event has its effect and nothing is parked, then
// holds the effects against the oracle: each key's are 1..n, in that order.
func (w *world) settled() {
	w.t.Helper()
	w.until("all effects made", func() bool {
		return w.number(`SELECT count(*) FROM effect`) >= w.total() && w.number(`SELECT count(*) FROM waybill.parked`) == 0
	})
	w.inOrder()
}

func (w *world) inOrder() {
	w.t.Helper()
	rows, err := w.db.Query(w.t.Context(), `SELECT key, array_agg(n ORDER BY serial) FROM effect GROUP BY key`)
	if err != nil {
		w.t.Fatal(err)
	}
	var key string
	var ns []int64
	seen := 0
	_, err = pgx.ForEachRow(rows, []any{&key, &ns}, func() error {
		seen++
		for i, n := range ns {
			if n != int64(i+1) {
				return fmt.Errorf("effects of %s: %v", key, ns)
			}
		}
		if int64(len(ns)) != w.sent[key] {
			return fmt.Errorf("%s has %d effects of %d events", key, len(ns), w.sent[key])
		}
		return nil
	})
	if err != nil || seen != len(w.sent) {
		w.t.Fatalf("%d keys of %d: %v", seen, len(w.sent), err)
	}
}

// gauge is the sum of a metric's values.
func (w *world) gauge(name string) (sum float64) {
	all, err := w.metrics.Gather()
	if err != nil {
		w.t.Error(err)
	}
	for _, f := range all {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetGauge().GetValue()
		}
	}
	return sum
}

// members is how many members of the group have partitions.
func (w *world) members() (n int) {
	groups, err := broker.ListGroups(w.t.Context(), w.producer)
	if err != nil {
		return 0
	}
	for _, g := range groups {
		if g.Name != w.group {
			continue
		}
		for _, m := range g.Members {
			if len(m.Assigned) > 0 {
				n++
			}
		}
	}
	return n
}

// valve lets a client's connections be cut.
type valve struct {
	mu    sync.Mutex
	shut  bool
	conns []net.Conn

	answer func([]byte) error // if set, sees what the server sends; an error cuts the connection instead
}

// censored shows what is read to its valve first.
type censored struct {
	net.Conn
	v *valve
}

func (c censored) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil {
		err = c.v.answer(p[:n])
	}
	if err != nil {
		_ = c.Close()
		return 0, err
	}
	return n, nil
}

// containsCommit finds the server's word that a transaction is committed.
func containsCommit(p []byte) bool { return bytes.Contains(p, []byte("C\x00\x00\x00\x0bCOMMIT\x00")) }

func (v *valve) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.shut {
		return nil, &net.OpError{Op: "dial", Net: network, Err: syscall.ECONNREFUSED}
	}
	var d net.Dialer
	c, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	v.conns = append(v.conns, c)
	if v.answer != nil {
		c = censored{c, v}
	}
	return c, nil
}

func (v *valve) set(shut bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.shut = shut
	if shut {
		for _, c := range v.conns {
			_ = c.Close()
		}
		v.conns = nil
	}
}
