package lag

import (
	"context"
	"log/slog"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a broker, a topic, a database and a monitor over them.
type world struct {
	t       testing.TB
	engine  *brokertest.Engine
	cl      *kgo.Client
	adm     *kadm.Client
	db      *pgxpool.Pool
	topic   string
	group   string
	metrics *prometheus.Registry
	m       *Monitor
	line    *line
}

// line is the way to the broker, which can be cut.
type line struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
}

func (l *line) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cut {
		return nil, net.ErrClosed
	}
	c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
	l.conns = append(l.conns, c)
	return c, err
}

func (l *line) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	for _, c := range l.conns {
		if c != nil {
			_ = c.Close()
		}
	}
	l.conns = nil
}

// quick judges after moments, so that tests need not wait long.
func quick() Config {
	return Config{
		Every: 100 * time.Millisecond, Timeout: time.Minute, StallAfter: 300 * time.Millisecond,
		Sustained: 300 * time.Millisecond, Reads: 10_000, Logger: slog.New(slog.DiscardHandler),
	}
}

func newWorld(t testing.TB, partitions int32, cfg Config) *world {
	t.Helper()
	return newWorldOn(t, brokertest.New(t), partitions, cfg)
}

// anyRequest is a broker that also serves what the embedded one refuses, as
// deleting records.
func anyRequest(t testing.TB) *brokertest.Engine {
	t.Helper()
	if brokertest.Kafka() {
		return brokertest.New(t)
	}
	c, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &brokertest.Engine{
		Config:       broker.Config{Brokers: c.ListenAddrs(), Logger: slog.New(slog.DiscardHandler)},
		Capabilities: broker.Kafka(),
	}
}

func newWorldOn(t testing.TB, e *brokertest.Engine, partitions int32, cfg Config) *world {
	t.Helper()
	w := &world{t: t, engine: e, metrics: prometheus.NewRegistry(), line: &line{}}
	w.cl = e.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	w.adm = kadm.NewClient(w.cl)
	w.topic, w.group = brokertest.Topic(t, "accounts"), brokertest.Group(t, "readers")
	db, err := pg.Open(t.Context(), pgtest.Migrated(t, consumer.Migrations()), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	w.db = db
	w.declare(partitions)
	if cfg.Groups == nil {
		cfg.Groups = []string{w.group}
	}
	cfg.Metrics = w.metrics
	w.m, err = New(Deps{DB: db, Client: func(opts ...kgo.Opt) (*kgo.Client, error) {
		return e.Config.Client(append(opts, kgo.Dialer(w.line.dial))...)
	}}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.m.Close)
	return w
}

func (w *world) declare(partitions int32) {
	w.t.Helper()
	w.eventually("the topic", func() bool {
		err := broker.Declare(w.t.Context(), w.cl, w.engine.Capabilities, broker.Topic{Name: w.topic, Partitions: partitions})
		return err == nil
	})
}

// publish writes n records to a partition, of a time ago.
func (w *world) publish(partition int32, n int, ago time.Duration) {
	w.t.Helper()
	recs := make([]*kgo.Record, n)
	for i := range recs {
		recs[i] = &kgo.Record{Topic: w.topic, Partition: partition, Value: []byte("v"), Timestamp: time.Now().Add(-ago)}
	}
	w.eventually("published", func() bool { return w.cl.ProduceSync(w.t.Context(), recs...).FirstErr() == nil })
}

func (w *world) commit(partition int32, offset int64) {
	w.t.Helper()
	var os kadm.Offsets
	os.AddOffset(w.topic, partition, offset, -1)
	if err := w.adm.CommitAllOffsets(w.t.Context(), w.group, os); err != nil {
		w.t.Fatal(err)
	}
}

// mark is what a member of package consumer saves.
func (w *world) mark(partition int32, offset int64) {
	w.t.Helper()
	ids, err := broker.TopicIDs(w.t.Context(), w.cl, w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	w.exec(`INSERT INTO waybill.watermark (group_name, topic, partition, topic_id, leader_epoch, next_offset)
		VALUES ($1, $2, $3, $4, -1, $5)
		ON CONFLICT (group_name, topic, partition) DO UPDATE SET next_offset = excluded.next_offset, topic_id = excluded.topic_id`,
		w.group, w.topic, partition, ids[w.topic], offset)
}

func (w *world) park(partition int32, offset int64, key, failure string) {
	w.t.Helper()
	w.exec(`INSERT INTO waybill.parked (group_name, topic, partition, "offset", key, event_id, type, tenant, subject,
			sequence, record_time, header_names, header_values, state, error, attempts)
		VALUES ($1, $2, $3, $4, $5, gen_random_uuid(), 'T', 't', 's', 1, now(), '{}', '{}', 'retrying', $6, 3)`,
		w.group, w.topic, partition, offset, []byte(key), failure)
}

func (w *world) exec(sql string, args ...any) {
	w.t.Helper()
	if _, err := w.db.Exec(w.t.Context(), sql, args...); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) eventually(what string, cond func() bool) {
	w.t.Helper()
	limit := time.After(3 * time.Minute)
	for !cond() {
		select {
		case <-limit:
			w.t.Fatalf("never: %s\n%+v", what, w.m.Latest())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// look is one look at a partition; its zero if the group is not there.
func (w *world) look(partition int32) Partition {
	w.t.Helper()
	if g := w.m.Look(w.t.Context()).Group(w.group); g != nil {
		for _, p := range g.Partitions {
			if p.Partition == partition {
				return p
			}
		}
	}
	return Partition{}
}

// until looks until a partition is as wanted.
func (w *world) until(what string, partition int32, cond func(Partition) bool) (p Partition) {
	w.t.Helper()
	w.eventually(what, func() bool { p = w.look(partition); return cond(p) })
	return p
}

// join lets a member take part in the group, without committing.
func (w *world) join() (leave func()) {
	w.t.Helper()
	cl, err := w.engine.Config.Client(kgo.ConsumerGroup(w.group), kgo.ConsumeTopics(w.topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.t.Context()))
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			cl.PollFetches(ctx)
		}
	}()
	left := sync.OnceFunc(func() {
		cancel()
		<-done
		cl.Close()
	})
	w.t.Cleanup(left)
	w.eventually("a member", func() bool {
		groups, err := w.adm.DescribeGroups(w.t.Context(), w.group)
		return err == nil && groups[w.group].State == "Stable"
	})
	return left
}

// metric is a gauge's value by the labels that are given; ok is false if it is
// absent.
func (w *world) metric(name string, labels map[string]string) (v float64, ok bool) {
	w.t.Helper()
	all, err := w.metrics.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range all {
		if f.GetName() != name {
			continue
		}
	series:
		for _, s := range f.GetMetric() {
			has := map[string]string{}
			for _, l := range s.GetLabel() {
				has[l.GetName()] = l.GetValue()
			}
			for k, want := range labels {
				if has[k] != want {
					continue series
				}
			}
			return s.GetGauge().GetValue(), true
		}
	}
	return 0, false
}
