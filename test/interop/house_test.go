package interop

import (
	"context"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
	"github.com/waybillhq/waybill/test/proc"
)

// house is a broker, or the shared Kafka, with a registry of ours on it.
type house struct {
	*testing.T
	engine *brokertest.Engine
	url    string // of the registry
	client *registry.Client
	kafka  *kgo.Client
}

func open(t *testing.T, auth server.Auth) *house {
	t.Helper()
	e := brokertest.New(t)
	s := server.New(e.Config, server.Config{Topic: brokertest.Topic(t, "schemas"), Capabilities: e.Capabilities, Logger: e.Logger, Auth: auth})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.Close()
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("registry: %v", err)
		}
	})
	select {
	case <-s.Ready():
	case err := <-ended:
		ended <- nil
		t.Fatalf("registry: %v", err)
	}
	c, err := registry.New(web.URL, registry.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &house{T: t, engine: e, url: web.URL, client: c, kafka: e.Client(t)}
}

// topic makes a topic of one partition, so that records have one order.
func (h *house) topic(name string) string {
	h.Helper()
	topic := broker.Topic{Name: brokertest.Topic(h, name), Partitions: 1}
	if err := broker.Declare(h.Context(), h.kafka, h.engine.Capabilities, topic); err != nil {
		h.Fatal(err)
	}
	return topic.Name
}

func (h *house) brokers() string { return strings.Join(h.engine.Brokers, ",") }

// read is the first n committed records of a topic.
func (h *house) read(topic string, n int) []*kgo.Record {
	h.Helper()
	cl := h.engine.Client(h, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	ctx, cancel := context.WithTimeout(h.Context(), time.Minute)
	defer cancel()
	var out []*kgo.Record
	for len(out) < n {
		fetches := cl.PollFetches(ctx)
		if err := fetches.Err0(); err != nil {
			h.Fatalf("read %s: %d of %d records, then %v", topic, len(out), n, err)
		}
		out = slices.Concat(out, fetches.Records())
	}
	return out
}

// waybill runs our command line on this house, and gives what it prints.
func (h *house) waybill(stdin string, args ...string) string {
	h.Helper()
	proc.Binary(h) // built before the command's time begins
	args = append(args, "--brokers", h.brokers(), "--registry", h.url)
	r := proc.Command{Args: args, Stdin: stdin}.Run(h)
	if r.Code != 0 {
		h.Fatalf("waybill %v: exit %d: %s%s", args, r.Code, r.Out, r.Err)
	}
	return r.Out
}
