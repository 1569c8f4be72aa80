package couriers

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

// publish hands positions to the client, for which there is room. What the
// request was cancelled for does not hold for them: they are accepted.
func (t *Telemetry) publish(ctx context.Context, schema int, courier uuid.UUID, fixes []Fix, out errand, received time.Time) {
	ctx = event.WithTenant(context.WithoutCancel(ctx), out.tenant.String())
	for i := range fixes {
		rec, err := t.record(ctx, schema, courier, &fixes[i], out, received)
		if err != nil {
			t.flying.Add(-1)
			t.count(lost, 1)
			t.cfg.Logger.ErrorContext(ctx, "encode a position", "courier", courier, "error", err)
			continue
		}
		t.client.TryProduce(ctx, rec, t.settled)
	}
}

// settled counts what became of a position. The client tells of an outage
// itself.
func (t *Telemetry) settled(_ *kgo.Record, err error) {
	t.flying.Add(-1)
	if err != nil {
		t.count(lost, 1)
		return
	}
	t.count(published, 1)
}

func (t *Telemetry) record(ctx context.Context, schema int, courier uuid.UUID, f *Fix, out errand, received time.Time) (*kgo.Record, error) {
	e := f.event(courier, received, out.order)
	value, err := t.contract.Schema.AppendEncode(registry.AppendHeader(nil, schema), &e)
	if err != nil {
		return nil, err
	}
	env := t.contract.Envelope(ctx, e, f.At)
	rec := &kgo.Record{Topic: t.contract.Topic, Key: []byte(env.Subject), Value: value, Headers: make([]kgo.RecordHeader, 0, 11)}
	env.Headers(func(name, value string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	})
	return rec, nil
}
