package transform

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

func TestWhatIsMadeIsSeenOnceInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3)
	w.moveMany(600)
	w.start(book(w.out))
	w.moveMany(600)
	w.settled()
	w.moveMany(50)
	w.settled()
}

func TestAnEventThatIsMadeNamesItsCauseAndIsTheSameEachTime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "a") // the second becomes two
	w.start(book(w.out))
	w.settled()
	made := w.committed(w.out.Topic)
	for i, rec := range made[len(made)-2:] {
		env, b := w.read(rec)
		if env.Tenant != "tenant-of-a" || env.Type != "test.books.Booked" || env.Source != "/books" || env.Subject != "a" || env.Sequence != 20+int64(i) {
			t.Errorf("%+v of %+v", env, b)
		}
		var from event.Envelope
		for _, in := range w.committed(w.in.Topic) {
			if in.Offset == 1 {
				from, _ = consumer.ReadEnvelope(in)
			}
		}
		if env.ID != event.DerivedID(from.ID, w.group, i) || env.CausationID != from.ID.String() || env.CorrelationID != from.CorrelationID || !env.Time.Equal(from.Time) {
			t.Errorf("%+v of %+v", env, from)
		}
	}
}

func TestRecordsOfAnyTypeAndFilters(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.move("a", "b", "a", "c")
	copyTo := func(_ context.Context, r consumer.Raw) ([]*kgo.Record, error) {
		return []*kgo.Record{{Topic: w.out.Topic, Key: r.Key, Value: r.Value, Headers: r.Headers}}, nil
	}
	w.startWith(func(g *Group) {
		OnAny(g, w.in.Topic, consumer.Filter{Types: []string{"test.>"}}, copyTo)
	}, nil, func(c *Config) { c.Filter.Tenants = []string{"tenant-of-a", "tenant-of-c"} })
	w.until("all is committed", func() bool { return w.behind() == 0 })
	var keys string
	for _, r := range w.committed(w.out.Topic) {
		keys += string(r.Key)
	}
	if keys != "aac" {
		t.Errorf("copies of %q, want aac", keys)
	}
}

func TestSmallTransactionsKeepTheOrderToo(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Config){
		"by records": func(c *Config) { c.MaxBatch = 7 },
		"by bytes":   func(c *Config) { c.MaxBatchBytes = 2000 },
		"by time":    func(c *Config) { c.MaxBatchTime = time.Millisecond },
		"one worker": func(c *Config) { c.Workers = 1 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2)
			w.moveMany(150)
			w.start(book(w.out), change)
			w.settled()
		})
	}
}

func TestABrokerWithoutTransactionsIsRefusedWithWhatToDo(t *testing.T) {
	if brokertest.Kafka() {
		t.Skip("this broker has transactions")
	}
	e := brokertest.New(t)
	c := *movedContract
	g := New(Deps{Broker: e.Config, Decoder: registry.NewDecoder(nil)}, Config{Group: "g"})
	on(g, &c, func(context.Context, event.Of[moved]) ([]event.Data, error) { return nil, nil })
	err := g.Run(t.Context())
	if !errors.Is(err, broker.ErrNoTransactions) || !strings.Contains(err.Error(), "consumer.On") || !strings.Contains(err.Error(), "outbox") {
		t.Errorf("%v", err)
	}
	groups, err := broker.ListGroups(t.Context(), e.Client(t))
	if err != nil || len(groups) > 0 {
		t.Errorf("groups %v %v: it joined before it asked", groups, err)
	}
}

func TestAGroupThatCannotBeMeantIsRefused(t *testing.T) {
	none := func(context.Context, event.Of[moved]) ([]event.Data, error) { return nil, nil }
	for want, change := range map[string]func(*Config){
		"no name":      func(c *Config) { c.Group = "" },
		"type pattern": func(c *Config) { c.Filter.Types = []string{"a..b"} },
		"never end":    func(c *Config) { c.Outputs = []*event.Contract{movedContract} },
		"no table to park in": func(c *Config) {
			c.Policy = consumer.Policy{consumer.When("x", consumer.Is(errBad)).Park(2, consumer.Between(1, 2))}
		},
		"shorter name": func(c *Config) { c.Group = strings.Repeat("g", 240) },
	} {
		cfg := Config{Group: "g"}
		change(&cfg)
		g := New(Deps{Broker: broker.Config{}, Decoder: registry.NewDecoder(nil), Schemas: &registry.Client{}}, cfg)
		On(g, none)
		if err := g.Run(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
