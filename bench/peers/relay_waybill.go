package main

import (
	"context"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/relay"
)

// waybill is `waybill run relay`, reading the WAL and writing marks.
type waybill struct {
	engines *engine.Engines
	program string
	outbox  *relay.Outbox
}

func (w *waybill) name() string { return "waybill" }

func (w *waybill) settings() string {
	return "waybill run relay as it comes: reads the WAL, marks what is published"
}

func (w *waybill) prepare(ctx context.Context) (err error) {
	w.outbox, err = relay.NewOutbox(ctx, w.engines, relay.WAL, backlogTopic, latencyTopic)
	if err != nil {
		return err
	}
	// The slot is made by the relay when it first runs. What commits before is
	// published from the table, which is not what is measured.
	return w.outbox.MakeSlot(ctx, w.program)
}

func (w *waybill) topic(short string) string { return w.outbox.Topic(short) }

func (w *waybill) fill(ctx context.Context, short string, events int64) error {
	_, err := w.outbox.Fill(ctx, short, events)
	return err
}

func (w *waybill) write(short string) func(ctx context.Context, writer int, key string, sequence int64) error {
	return w.outbox.WriteOne(short)
}

func (w *waybill) start(ctx context.Context, _ string) (*child.Process, error) {
	return w.outbox.Start(ctx, w.program)
}

func (w *waybill) settled(ctx context.Context, events int64) (bool, error) {
	n, err := w.outbox.Marked(ctx)
	return n >= events, err
}
