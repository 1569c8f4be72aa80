package doctor

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"testing"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/registry"
	registryserver "github.com/waybillhq/waybill/registry/server"
)

func TestABrokerThatCannotBeReached(t *testing.T) {
	t.Parallel()
	cfg := broker.Config{Brokers: []string{"127.0.0.1:1"}, Logger: slog.New(slog.DiscardHandler)}
	found := lookAtBroker(t.Context(), Subject{Broker: cfg})
	if len(found) != 1 {
		t.Errorf("%+v", found)
	}
	found[0].is(t, Fail, "127.0.0.1:1", "WAYBILL_KAFKA_BROKERS")
}

func TestTopicsThatAreNotAsDeclared(t *testing.T) {
	t.Parallel()
	e := brokertest.New(t)
	is := broker.Topic{Name: brokertest.Topic(t, "things"), Partitions: 3}
	if err := broker.Declare(t.Context(), e.Client(t), e.Capabilities, is); err != nil {
		t.Fatal(err)
	}
	s := Subject{Broker: e.Config, Topics: []broker.Topic{is}}
	found := lookAtBroker(t.Context(), s)
	find(t, found, "broker").is(t, OK, "1 answer")
	find(t, found, "topics").is(t, OK)
	more := is
	more.Partitions = 6
	s.Topics = []broker.Topic{more}
	find(t, lookAtBroker(t.Context(), s), "topics").is(t, Warn, "partitions is 3, not 6", "--partitions 6")
	s.Topics = []broker.Topic{is, {Name: brokertest.Topic(t, "others"), Partitions: 1}}
	find(t, lookAtBroker(t.Context(), s), "topics").is(t, Warn, "missing", "others")
	// It only looks.
	find(t, lookAtBroker(t.Context(), s), "topics").is(t, Warn, "missing", "others")
	s.Relay.ExactlyOnce = true
	if f := find(t, lookAtBroker(t.Context(), s), "broker"); e.Capabilities.Transactions {
		f.is(t, OK, "transactions yes")
	} else {
		f.is(t, Fail, "transactions no", "exactly_once: false")
	}
}

func TestARegistryThatAnswersAndOneThatDoesNot(t *testing.T) {
	t.Parallel()
	e := brokertest.New(t)
	reg := registryserver.New(e.Config, registryserver.Config{Topic: brokertest.Topic(t, "schemas"), Capabilities: e.Capabilities, Logger: e.Logger})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- reg.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-reg.Ready()
	web := httptest.NewServer(reg)
	look := func() Finding {
		cl, err := registry.New(web.URL, registry.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		return find(t, lookAtRegistry(t.Context(), Subject{Registry: cl}), "registry")
	}
	look().is(t, OK, "0 subjects")
	web.Close()
	look().is(t, Fail, "WAYBILL_REGISTRY_URL")
}
