// Package notify says which browsers hear of an order's events: its merchant of
// everything, whoever holds its tracking link of the bare course.
//
// Promise: an event reaches the channel of its own tenant and of its own order
// and no other, and what goes to an order's channel is picked field by field:
// what a contract gains later stays out until it is added here.
//
// Limits: it maps; delivering is package push's, with its promises.
package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/push"
	"github.com/waybillhq/waybill/registry"
)

// TenantChannel is where a merchant's events go.
func TenantChannel(tenant uuid.UUID) string { return "tenant/" + tenant.String() }

// OrderChannel is where the public course of an order goes.
func OrderChannel(order uuid.UUID) string { return "order/" + order.String() }

// Decoder reads the value of a record as reader sees it.
type Decoder interface {
	Decode(ctx context.Context, value []byte, into any, reader *avro.Schema) error
}

// ErrStranger is a record that is no event of an order, or not of a tenant.
var ErrStranger = errors.New("not an order's event")

// Route maps records of orders.events to channels.
//
// While the registry cannot be asked it waits: a record it gave up would be
// missing from every open page.
func Route(d Decoder) push.Route {
	return func(ctx context.Context, rec *kgo.Record, env *event.Envelope) ([]push.Delivery, error) {
		data, known := contracts.New(env.Type)
		if !known {
			return nil, nil // a type newer than this program
		}
		if err := patiently(ctx, d, rec.Value, data); err != nil {
			return nil, fmt.Errorf("route %s %s: %w", env.Type, env.ID, err)
		}
		return deliveries(env, data)
	}
}

// patiently decodes, and asks again every second where the registry is away.
func patiently(ctx context.Context, d Decoder, value []byte, data event.Data) error {
	again := time.NewTicker(time.Second)
	defer again.Stop()
	for {
		err := d.Decode(ctx, value, data, data.EventContract().Schema)
		if !errors.Is(err, registry.ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-again.C:
		}
	}
}

func deliveries(env *event.Envelope, data event.Data) ([]push.Delivery, error) {
	tenant, err := uuid.Parse(env.Tenant)
	if err != nil {
		return nil, fmt.Errorf("%w: tenant %.64q", ErrStranger, env.Tenant)
	}
	order, err := uuid.Parse(data.EventKey())
	if err != nil || data.EventKey() != env.Subject {
		return nil, fmt.Errorf("%w: subject %.64q, key %.64q", ErrStranger, env.Subject, data.EventKey())
	}
	full, err := push.JSON(env, data)
	if err != nil {
		return nil, err
	}
	bare, err := json.Marshal(publicOf(env, data))
	if err != nil {
		return nil, fmt.Errorf("encode %s %s for the public: %w", env.Type, env.ID, err)
	}
	return []push.Delivery{
		{Channel: TenantChannel(tenant), Message: push.Message{Data: full}},
		{Channel: OrderChannel(order), Message: push.Message{Data: bare}},
	}, nil
}

// public is all that an order's channel tells.
type public struct {
	Type     string     `json:"type"`
	Time     time.Time  `json:"time"`
	Sequence int64      `json:"sequence"`
	Data     publicData `json:"data"`
}

type publicData struct {
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

func publicOf(env *event.Envelope, data event.Data) public {
	p := public{Type: env.Type, Time: env.Time, Sequence: env.Sequence}
	if changed, ok := data.(*contracts.OrderStatusChanged); ok {
		p.Data = publicData{From: string(changed.From), To: string(changed.To)}
	}
	return p
}
