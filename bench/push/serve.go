package push

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/push"
)

// ServeCommand, under `waybill bench`, is the server that is measured.
const ServeCommand = "push-server"

func channelOf(i int) string { return "c" + strconv.Itoa(i) }

// record is event n for a channel.
func record(channel string, n, body int) *kgo.Record {
	env := event.Envelope{
		ID: event.NewID(), Source: "/bench", Type: "bench.Moved", Subject: channel, Time: time.Now(), Tenant: channel, Sequence: 1,
	}
	rec := &kgo.Record{Key: []byte(channel), Value: Payload(n, body)}
	env.Headers(func(name, value string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	})
	return rec
}

// ServeConfig of the server that is measured.
type ServeConfig struct {
	Topic       string
	Connections int
	Ready       string // file that its address is written to
	Client      push.Client
	Logger      *slog.Logger
}

// Serve serves streams until ctx ends.
func Serve(ctx context.Context, cfg ServeConfig) error {
	hub, err := push.New(cfg.Client, push.Config{
		Topics: []string{cfg.Topic}, Route: routeTo(cfg.Connections), Key: [32]byte{1}, Logger: cfg.Logger,
		MaxConnections: cfg.Connections + 100,
	})
	if err != nil {
		return err
	}
	streams := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { hub.Serve(w, r, r.URL.Query().Get("channel")) })
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return hub.Run(gctx) })
	g.Go(func() error { return ServeReady(gctx, streams, hub.Ready(), cfg.Ready) })
	return g.Wait()
}

// routeTo sends an event to its tenant's channel, or to all n.
func routeTo(n int) push.Route {
	all := make([]string, n)
	for i := range all {
		all[i] = channelOf(i)
	}
	return func(_ context.Context, rec *kgo.Record, env *event.Envelope) ([]push.Delivery, error) {
		line, err := push.JSON(env, json.RawMessage(rec.Value))
		if err != nil {
			return nil, err
		}
		m := push.Message{Event: "moved", Data: line}
		if env.Tenant != Everybody {
			return []push.Delivery{{Channel: env.Tenant, Message: m}}, nil
		}
		out := make([]push.Delivery, n)
		for i := range out {
			out[i] = push.Delivery{Channel: all[i], Message: m}
		}
		return out, nil
	}
}

// Waybill is our own server with its broker.
type Waybill struct {
	*Process
	client *kgo.Client
}

// StartWaybill starts the server on a broker, with a topic of its own.
func StartWaybill(ctx context.Context, connections int, program string, e *engine.Engines) (*Waybill, error) {
	topic := e.Name()
	if err := e.Declare(ctx, topic); err != nil {
		return nil, err
	}
	p, err := Start(ctx, "the push server", program, func(ready string) []string {
		return []string{"bench", ServeCommand, "--topic", topic, "--connections", strconv.Itoa(connections), "--ready", ready}
	}, e.Env())
	if err != nil {
		return nil, err
	}
	cl, err := e.Broker.Client(kgo.ProducerLinger(0), kgo.DefaultProduceTopic(topic))
	if err != nil {
		_ = p.Stop()
		return nil, err
	}
	return &Waybill{p, cl}, nil
}

// Stop ends the server.
func (w *Waybill) Stop() error {
	w.client.Close()
	return w.Process.Stop()
}

// Path implements [Server].
func (w *Waybill) Path(channel string) string { return "/?channel=" + channel }

// Opened implements [Server].
func (w *Waybill) Opened(line []byte) bool { return bytes.HasPrefix(line, []byte("id: ")) }

// Send implements [Server]: it produces to the topic.
func (w *Waybill) Send(ctx context.Context, channel string, n, body int, done func(error)) {
	w.client.Produce(ctx, record(channel, n, body), func(_ *kgo.Record, err error) { done(err) })
}
