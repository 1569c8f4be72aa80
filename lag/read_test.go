package lag

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
)

// A transaction's end is a record that nobody reads: a group that has read all
// there is stands before it for ever.
func TestNothingButATransactionsMarkerIsNothingBehind(t *testing.T) {
	w := newWorldOn(t, anyRequest(t), 1, quick())
	tx := w.engine.Client(t, kgo.TransactionalID(w.group))
	w.eventually("a transaction", func() bool {
		if err := tx.BeginTransaction(); err != nil {
			return false
		}
		err := tx.ProduceSync(t.Context(), &kgo.Record{Topic: w.topic, Value: []byte("v")}).FirstErr()
		return errors.Join(err, tx.EndTransaction(t.Context(), kgo.TransactionEndTry(err == nil))) == nil
	})
	w.mark(0, 0)
	if p := w.look(0); p.Lag == nil || *p.Lag == 0 {
		t.Errorf("before the record: %+v", p)
	}
	w.mark(0, 1)
	p := w.until("all is read", 0, func(p Partition) bool { return p.Lag != nil && *p.Lag == 0 })
	if *p.End != 2 || p.Seconds == nil || *p.Seconds != 0 || p.State != OK {
		t.Errorf("%+v", p)
	}
	w.publish(0, 1, time.Minute)
	if p := w.until("one more", 0, func(p Partition) bool { return p.Exact && *p.Lag > 0 }); *p.Seconds < 59 {
		t.Errorf("%+v", p)
	}
}

func TestLargeRecordsAreReadToo(t *testing.T) {
	const partitions = 6
	w := newWorld(t, partitions, quick())
	large := strings.Repeat("x", 300<<10) // more than is asked for of a partition among others
	for p := range int32(partitions) {
		r := &kgo.Record{Topic: w.topic, Partition: p, Value: []byte(large), Timestamp: time.Now().Add(-time.Hour)}
		if err := w.cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		w.mark(p, 0)
	}
	for p := range int32(partitions) {
		if got := w.until("it is known", p, func(p Partition) bool { return p.Seconds != nil }); !got.Exact || *got.Seconds < 3599 {
			t.Errorf("%+v", got)
		}
	}
}

// moved is an event of a real group.
type moved struct {
	Account string `avro:"account"`
}

var movedContract = event.MustContract("lag.test.accounts", "/accounts",
	`{"type":"record","name":"Moved","namespace":"lag.test","fields":[{"name":"account","type":"string"}]}`)

func (moved) EventContract() *event.Contract { return movedContract }
func (m moved) EventKey() string             { return m.Account }
func (moved) EventSequence() int64           { return 0 }

type plain struct{}

func (plain) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, err := reader.Decode(value, into)
	return err
}

// The real thing: a member of package consumer whose handler fails one key.
func TestAKeyThatAHandlerFailsIsNamed(t *testing.T) {
	w := newWorld(t, 1, quick())
	if err := consumer.EnsureDays(t.Context(), w.db); err != nil {
		t.Fatal(err)
	}
	w.topic = movedContract.Topic // the handler's own
	w.declare(1)
	defer func() { _, _ = w.adm.DeleteTopics(context.WithoutCancel(t.Context()), w.topic) }() // a Kafka keeps it for the next run
	g := consumer.New(consumer.Deps{DB: w.db, Client: w.engine.Config.Client, Decoder: plain{}}, consumer.Config{
		Group: w.group, FlushEvery: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
		Retry: consumer.Retry{Attempts: 1, Park: time.Hour, ParkMax: time.Hour},
	})
	consumer.On(g, func(_ context.Context, _ pgx.Tx, e event.Of[moved]) error {
		if e.Data.Account == "bad" {
			return errors.New("no such account")
		}
		return nil
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- g.Run(ctx) }()
	defer func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for _, account := range []string{"good", "bad", "bad", "good"} {
		env := movedContract.Envelope(event.WithTenant(t.Context(), "t"), moved{account}, time.Now())
		value, err := movedContract.Schema.Encode(moved{account})
		if err != nil {
			t.Fatal(err)
		}
		r := &kgo.Record{Topic: w.topic, Key: []byte(account), Value: value}
		env.Headers(func(k, v string) { r.Headers = append(r.Headers, kgo.RecordHeader{Key: k, Value: []byte(v)}) })
		w.eventually("published", func() bool { return w.cl.ProduceSync(t.Context(), r).FirstErr() == nil })
	}
	p := w.until("the key is named", 0, func(p Partition) bool {
		return p.State == Stalled && p.Blocked != nil && p.Blocked.Events == 2 && p.Lag != nil && *p.Lag == 0
	})
	if p.Blocked.Key != "bad" || p.Blocked.Keys != 1 || !strings.Contains(p.Blocked.Error, "no such account") || *p.At != p.Blocked.Offset {
		t.Errorf("%+v", p.Blocked)
	}
	if g := w.m.Latest().Group(w.group); *g.ParkedKeys != 1 || *g.ParkedEvents != 2 {
		t.Errorf("%+v", g)
	}
}

func TestEndpointsTellWhatIsKnownAndNothingElse(t *testing.T) {
	w := newWorld(t, 3, quick())
	h := w.m.Handler(func(string) Goal { return Goal{Min: 2} })
	get := func(path string) (int, map[string]any) {
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		var body map[string]any
		if err := json.Unmarshal(r.Body.Bytes(), &body); err != nil {
			t.Errorf("%s: %s", path, r.Body)
		}
		return r.Code, body
	}
	for _, path := range []string{"/v1/lag", "/v1/lag/" + w.group, "/v1/scale/" + w.group} {
		if code, _ := get(path); code != http.StatusServiceUnavailable {
			t.Errorf("%s before the first look: %d", path, code)
		}
	}
	w.publish(0, 5, 0)
	w.mark(0, 1)
	w.look(0)
	if code, body := get("/v1/lag"); code != http.StatusOK || len(body["groups"].([]any)) != 1 || body["groups"].([]any)[0].(map[string]any)["partitions"] != nil {
		t.Errorf("%d %v", code, body)
	}
	if code, body := get("/v1/lag/" + w.group); code != http.StatusOK || len(body["partitions"].([]any)) != 3 || body["lag"] != 4.0 {
		t.Errorf("%d %v", code, body)
	}
	if code, body := get("/v1/scale/" + w.group); code != http.StatusOK || body["replicas"] != 2.0 {
		t.Errorf("%d %v", code, body)
	}
	if code, _ := get("/v1/scale/nosuch"); code != http.StatusNotFound {
		t.Errorf("a group that is none: %d", code)
	}
	w.line.set(true)
	w.until("unknown", 0, func(p Partition) bool { return p.State == Unknown })
	if code, body := get("/v1/scale/" + w.group); code != http.StatusServiceUnavailable || body["error"] == "" {
		t.Errorf("while nothing is known: %d %v", code, body)
	}
}
