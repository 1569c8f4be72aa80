package feed

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/queue"
	"github.com/waybillhq/waybill/registry"
)

type world struct {
	t      *testing.T
	db     *pgxpool.Pool
	engine *brokertest.Engine
	client *kgo.Client
	topic  string
	group  string
	queue  *queue.Queue
}

func newWorld(t *testing.T, s queue.Settings) *world {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := pg.Migrate(t.Context(), db, incident.Migration(), queue.Migration()); err != nil {
		t.Fatal(err)
	}
	if err := queue.Declare(t.Context(), db, "", "mail", s); err != nil {
		t.Fatal(err)
	}
	e := brokertest.New(t)
	w := &world{t: t, db: db, engine: e, client: e.Client(t), topic: brokertest.Topic(t, "events"), group: brokertest.Group(t, "feed")}
	w.queue = queue.New(db, queue.Config{Name: "mail"})
	if err := broker.Declare(t.Context(), w.client, e.Capabilities, broker.Topic{Name: w.topic, Partitions: 3}); err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *world) publish(typ string, n, from int) {
	w.t.Helper()
	recs := make([]*kgo.Record, n)
	for i := range recs {
		id := event.NewID().String()
		recs[i] = &kgo.Record{Topic: w.topic, Key: fmt.Append(nil, "k", (from+i)%7), Value: fmt.Append(nil, from+i), Headers: []kgo.RecordHeader{
			{Key: event.HeaderType, Value: []byte(typ)}, {Key: event.HeaderID, Value: []byte(id)}, {Key: event.HeaderTenant, Value: []byte("t1")},
		}}
	}
	if err := w.client.ProduceSync(w.t.Context(), recs...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) feed(cfg Config, d Decoder) (stop func()) {
	cfg.Queue, cfg.Topic, cfg.Group, cfg.Logger = "mail", w.topic, w.group, slog.New(slog.DiscardHandler)
	f := New(Deps{DB: w.db, Decoder: d, Client: func(opts ...kgo.Opt) (*kgo.Client, error) {
		return w.engine.Config.Client(append(opts, kgo.HeartbeatInterval(200*time.Millisecond), kgo.FetchMaxWait(100*time.Millisecond))...)
	}}, cfg)
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
}

func (w *world) number(sql string) (n int) {
	w.t.Helper()
	if err := w.db.QueryRow(w.t.Context(), sql).Scan(&n); err != nil {
		w.t.Fatal(err)
	}
	return n
}

func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(3 * time.Minute); !holds(); pause(w.t.Context(), 20*time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("not so after a minute: %s", what)
		}
	}
}

const countMessages = `SELECT count(*) FROM waybill.queue_messages`

func TestATopicsRecordsAreInTheQueueWithTheirEnvelope(t *testing.T) {
	w := newWorld(t, queue.Settings{})
	w.publish("a.Wanted", 1, 1)
	w.publish("a.Other", 3, 2)
	w.publish("a.Wanted", 1, 5)
	stop := w.feed(Config{Types: []string{"a.Wanted"}, KeyGroups: true, JSON: true}, wrapped{})
	defer stop()
	w.until("two came", func() bool { return w.number(countMessages) == 2 })
	got, err := w.queue.Receive(t.Context(), queue.ReceiveOptions{Max: 1, Wait: time.Minute})
	if err != nil || len(got) != 1 {
		t.Fatal(got, err)
	}
	m := got[0]
	var body struct{ Value string }
	if err := json.Unmarshal(m.Body, &body); err != nil || m.ContentType != queue.ContentTypeJSON {
		t.Errorf("%s, %v", m.Body, err)
	}
	if m.Headers[event.HeaderTenant] != "t1" || m.Headers[event.HeaderID] != m.DedupeID || m.Headers[event.HeaderType] != "a.Wanted" ||
		m.Group != m.Headers[HeaderKey] || !strings.HasPrefix(m.Headers[HeaderPlace], w.topic+"/") {
		t.Errorf("%+v", m)
	}
}

// wrapped decodes bytes to a JSON object; "5" it cannot read.
type wrapped struct{}

func (wrapped) DecodeAny(_ context.Context, v []byte) (registry.Info, []byte, error) {
	if string(v) == "666" {
		return registry.Info{}, nil, errors.New("malformed")
	}
	b, err := json.Marshal(map[string]string{"value": string(v)})
	return registry.Info{}, b, err
}

func TestAnUnreadableRecordComesAsItsBytesWithTheReason(t *testing.T) {
	w := newWorld(t, queue.Settings{})
	w.publish("a.Any", 1, 666)
	stop := w.feed(Config{JSON: true}, wrapped{})
	defer stop()
	got, err := w.queue.Receive(t.Context(), queue.ReceiveOptions{Wait: time.Minute})
	if err != nil || len(got) != 1 || string(got[0].Body) != "666" || got[0].Headers[HeaderError] == "" {
		t.Errorf("%+v, %v", got, err)
	}
}

// The database's session is cut, the feed is ended in the midst of its work,
// offsets at the broker are never relied on: each record is in the queue once.
func TestAFeedThatIsCutOffLosesAndRepeatsNothing(t *testing.T) {
	w := newWorld(t, queue.Settings{Dedupe: time.Second}) // its window is not what keeps copies out
	const all = 4000
	stop := w.feed(Config{}, nil)
	for i := 0; i < all; i += 200 {
		w.publish("a.Any", 200, i)
		switch i / 200 % 4 {
		case 1:
			w.cut()
		case 3:
			stop()
			stop = w.feed(Config{}, nil)
		}
	}
	w.until("all came", func() bool { return w.number(countMessages) >= all })
	stop()
	if n := w.number(`SELECT count(DISTINCT body) FROM waybill.queue_messages`); n != all || w.number(countMessages) != all {
		t.Errorf("%d different of %d messages, want %d", n, w.number(countMessages), all)
	}
}

// cut ends all other sessions of the database, whatever they are doing.
func (w *world) cut() {
	_, _ = w.db.Exec(w.t.Context(), `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()`)
	w.db.Reset() // our own idle connections went too
}

func TestAFullQueueIsWaitedFor(t *testing.T) {
	w := newWorld(t, queue.Settings{MaxLength: 50})
	stop := w.feed(Config{}, nil)
	defer stop()
	w.publish("a.Any", 40, 0)
	w.until("the first came", func() bool { return w.number(countMessages) == 40 })
	w.publish("a.Any", 40, 40)
	seen := map[string]bool{}
	for len(seen) < 80 {
		got, err := w.queue.Receive(t.Context(), queue.ReceiveOptions{Max: 10, Wait: time.Minute})
		if err != nil || len(got) == 0 {
			t.Fatal(got, err)
		}
		for _, m := range got {
			seen[string(m.Body)] = true
			if err := w.queue.Ack(t.Context(), w.db, m.Receipt); err != nil {
				t.Fatal(err)
			}
		}
	}
}
