package cdc_test

import (
	"context"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/cdc"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) != "" {
		childMain()
		return
	}
	// They wait for disks and keepalives more than they work.
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = f.Value.Set("6")
	}
	goleak.VerifyTestMain(m)
}

// patience is how long a test waits for what must come.
const patience = 3 * time.Minute

// world is a database, a broker and a registry.
type world struct {
	t        testing.TB
	dsn      string
	db       *pgxpool.Pool
	engine   *brokertest.Engine
	url      string // of the registry
	registry *registry.Client
	decoder  *registry.Decoder
	adm      *kadm.Client
	logged   *logged
}

func newWorld(t testing.TB) *world {
	t.Helper()
	return newWorldOn(t, pgtest.Migrated(t, incident.Migration(), cdc.Migration()))
}

func newWorldOn(t testing.TB, dsn string) *world {
	t.Helper()
	w := &world{t: t, dsn: dsn, engine: brokertest.New(t), logged: &logged{}}
	db, err := pg.Open(t.Context(), w.dsn, pg.Config{})
	must(t, err)
	t.Cleanup(db.Close)
	w.db = db
	must(t, pg.Migrate(t.Context(), db, incident.Migration(), cdc.Migration()))
	w.exec("CREATE SCHEMA shop")
	w.url = serveRegistry(t, w.engine)
	w.registry, err = registry.New(w.url, registry.Config{})
	must(t, err)
	t.Cleanup(w.registry.Close)
	w.decoder = registry.NewDecoder(w.registry)
	w.adm = kadm.NewClient(w.engine.Client(t))
	return w
}

func serveRegistry(t testing.TB, e *brokertest.Engine) string {
	t.Helper()
	s := server.New(e.Config, server.Config{Topic: brokertest.Topic(t, "schemas"), Capabilities: e.Capabilities, Logger: e.Logger})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	select {
	case <-s.Ready():
	case err := <-ended:
		t.Fatal(err)
	}
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return web.URL
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// exec runs statements, each a transaction of its own.
func (w *world) exec(statements ...string) {
	w.t.Helper()
	for _, sql := range statements {
		if _, err := w.db.Exec(context.Background(), sql); err != nil {
			w.t.Fatalf("%s: %v", sql, err)
		}
	}
}

// table is a table of the schema shop, all of whose columns are published.
func (w *world) table(name string) cdc.Table {
	return cdc.Table{Schema: "shop", Name: name, Columns: []string{cdc.AllColumns}, Topic: brokertest.Topic(w.t, name)}
}

func (w *world) config(tables ...cdc.Table) cdc.Config {
	return cdc.Config{
		Tables: tables, Partitions: 3, Capabilities: w.engine.Capabilities, Retry: 20 * time.Millisecond,
		Check: time.Second, Logger: slog.New(w.logged),
	}
}

func (w *world) new(cfg cdc.Config) *cdc.CDC {
	return cdc.New(w.db, w.engine.Config.Client, w.registry, cfg)
}

// start runs c until the returned function is called.
func (w *world) start(c *cdc.CDC) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("run: %v", err)
		}
	})
	w.t.Cleanup(stop)
	return stop
}

func (w *world) run(tables ...cdc.Table) (stop func()) {
	w.t.Helper()
	stop = w.start(w.new(w.config(tables...)))
	w.settle()
	return stop
}

// eventually waits until ok.
func (w *world) eventually(claim string, ok func() (bool, any)) {
	w.t.Helper()
	deadline := time.Now().Add(patience)
	for {
		good, why := ok()
		if good {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("not so: %s: %v\n%s", claim, why, w.logged.last())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *world) status() cdc.Status {
	w.t.Helper()
	s, err := cdc.ReadStatus(context.Background(), w.db, "")
	must(w.t, err)
	return s
}

// settle waits until every snapshot is done and all that was committed before
// the call is confirmed, and so acknowledged by the broker.
func (w *world) settle() {
	w.t.Helper()
	w.eventually("all snapshots are done", func() (bool, any) {
		s := w.status()
		for _, t := range s.Tables {
			if t.Error == nil && (t.Snapshot.Phase != "done" || t.Snapshot.Pending) {
				return false, s
			}
		}
		return s.Slot.Exists && len(s.Tables) > 0, s
	})
	w.confirmed()
}

func (w *world) confirmed() {
	w.t.Helper()
	var now string
	must(w.t, w.db.QueryRow(context.Background(), `SELECT pg_current_wal_lsn()::text`).Scan(&now))
	w.eventually("what was committed is confirmed", func() (ok bool, why any) {
		err := w.db.QueryRow(context.Background(), `SELECT confirmed_flush_lsn >= $1::pg_lsn FROM pg_replication_slots WHERE slot_name = $2`,
			now, cdc.SlotName(w.db.Config().ConnConfig.Database)).Scan(&ok)
		return ok, err
	})
}

// records is everything in a topic, partition by partition.
func (w *world) records(topic string) []*kgo.Record {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	ends, err := w.adm.ListEndOffsets(ctx, topic)
	must(w.t, err)
	left := int64(0)
	ends.Each(func(o kadm.ListedOffset) { left += o.Offset })
	cl := w.engine.Client(w.t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	defer cl.Close()
	var out []*kgo.Record
	for left > int64(len(out)) {
		f := cl.PollFetches(ctx)
		must(w.t, f.Err())
		out = append(out, f.Records()...)
	}
	return out
}

// told is a decoded record; nil Value for a tombstone.
type told struct {
	*kgo.Record
	Op            string
	Before, After map[string]any
	Value         map[string]any
}

func (w *world) told(topic string) (all []told) {
	w.t.Helper()
	for _, r := range w.records(topic) {
		all = append(all, w.decode(r))
	}
	return all
}

func (w *world) decode(r *kgo.Record) told {
	w.t.Helper()
	d := told{Record: r}
	if r.Value == nil {
		return d
	}
	var v any
	must(w.t, w.decoder.Decode(context.Background(), r.Value, &v, nil))
	d.Value = v.(map[string]any)
	d.Op = d.Value["op"].(string)
	d.Before, _ = d.Value["before"].(map[string]any)
	d.After, _ = d.Value["after"].(map[string]any)
	return d
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// rebuilt is what a reader of the topic who keeps the last record of each key
// ends up with, in the order of the log.
func (w *world) rebuilt(topic string) map[string]map[string]any {
	w.t.Helper()
	state := map[string]map[string]any{}
	for _, e := range w.told(topic) {
		key := string(e.Key)
		if e.Value == nil {
			delete(state, key)
			continue
		}
		if e.Op == "d" {
			continue // the tombstone follows
		}
		row := maps.Clone(e.After)
		for _, name := range e.Value["unchanged"].([]any) {
			row[name.(string)] = state[key][name.(string)]
		}
		state[key] = row
	}
	return state
}

// rows is what a table is: its columns as text, by key.
func (w *world) rows(table, key string) map[string]map[string]any {
	w.t.Helper()
	rows, err := w.db.Query(context.Background(), `SELECT `+key+`, to_jsonb(t) FROM `+table+` t`)
	must(w.t, err)
	defer rows.Close()
	out := map[string]map[string]any{}
	for rows.Next() {
		var k string
		var row map[string]any
		must(w.t, rows.Scan(&k, &row))
		out[k] = row
	}
	must(w.t, rows.Err())
	return out
}

// same compares rows by how they print: numbers come from JSON as floats.
func (w *world) same(got, want map[string]map[string]any) {
	w.t.Helper()
	if diff := difference(got, want); diff != "" {
		w.t.Fatalf("the topic is not the table:\n%s\n%s", diff, w.logged.last())
	}
}

func difference(got, want map[string]map[string]any) string {
	var b strings.Builder
	for k := range want {
		if !reflect.DeepEqual(printed(got[k]), printed(want[k])) {
			fmt.Fprintf(&b, "%s: topic %v, table %v\n", k, got[k], want[k])
		}
	}
	for k := range got {
		if want[k] == nil {
			fmt.Fprintf(&b, "%s: topic %v, not in the table\n", k, got[k])
		}
	}
	return b.String()
}

func printed(row map[string]any) map[string]string {
	out := map[string]string{}
	for k, v := range row {
		if f, ok := v.(float64); ok && f == float64(int64(f)) {
			v = int64(f)
		}
		out[k] = fmt.Sprint(v)
	}
	return out
}

// logged keeps what was logged.
type logged struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logged) Enabled(context.Context, slog.Level) bool { return true }
func (l *logged) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logged) WithGroup(string) slog.Handler            { return l }

func (l *logged) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(&l.text, "%s %s %s", r.Time.Format("05.000"), r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&l.text, " %s", a)
		return true
	})
	l.text.WriteByte('\n')
	return nil
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// last is the end of it.
func (l *logged) last() string {
	lines := strings.Split(l.String(), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// has tells whether a line of the level has all of parts.
func (l *logged) has(level slog.Level, parts ...string) bool {
	for line := range strings.Lines(l.String()) {
		ok := strings.Contains(line, " "+level.String()+" ")
		for _, p := range parts {
			ok = ok && strings.Contains(line, p)
		}
		if ok {
			return true
		}
	}
	return false
}

func (w *world) incidents() []incident.Seen {
	w.t.Helper()
	seen, err := incident.List(context.Background(), w.db, time.Time{}, 100)
	must(w.t, err)
	return seen
}

func (w *world) hasIncident(kind string, parts ...string) bool {
	for _, in := range w.incidents() {
		ok := in.Part == "cdc" && in.Kind == kind
		for _, p := range parts {
			ok = ok && strings.Contains(in.Text, p)
		}
		if ok {
			return true
		}
	}
	return false
}

// schema is the latest schema of a subject.
func (w *world) schema(subject string) string {
	w.t.Helper()
	req, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, w.url+"/subjects/"+url.PathEscape(subject)+"/versions/latest/schema", nil)
	must(w.t, err)
	resp, err := http.DefaultClient.Do(req)
	must(w.t, err)
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	must(w.t, err)
	if resp.StatusCode != http.StatusOK {
		w.t.Fatalf("schema of %s: %s %s", subject, resp.Status, b)
	}
	return string(b)
}
