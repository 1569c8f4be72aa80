// Package notify says which browsers hear of an order and of its courier: its
// merchant of everything, whoever holds its tracking link of the bare course,
// and a courier's device that there is something to ask for.
//
// Promise: an event reaches the channel of its own tenant, of its own order and
// of its own courier and no other, and what goes to an order's or a courier's
// channel, and of a position to anybody, is picked field by field: what a
// contract gains later stays out until it is added here.
//
// Limits: it maps; delivering is package push's, with its promises. That a
// position belongs to an order under way is taken from the event itself.
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
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/push"
	"github.com/waybillhq/waybill/registry"
)

// TenantChannel is where a merchant's events go.
func TenantChannel(tenant uuid.UUID) string { return "tenant/" + tenant.String() }

// OrderChannel is where the public course of an order goes.
func OrderChannel(order uuid.UUID) string { return "order/" + order.String() }

// CourierChannel is where a courier's device is woken: its messages say that
// something changed, and not what.
func CourierChannel(courier uuid.UUID) string { return "courier/" + courier.String() }

// Topics are those that [Route] maps, and LatestTopics those of them that are
// telemetry, see [push.Config].
func Topics() []string { return []string{"orders.events", "couriers.events", "dispatch.events"} }

// LatestTopics are the topics all of whose messages only their newest matters of.
func LatestTopics() []string { return []string{"couriers.events"} }

// Decoder reads the value of a record as reader sees it.
type Decoder interface {
	Decode(ctx context.Context, value []byte, into any, reader *avro.Schema) error
}

// ErrStranger is a record that is not what its envelope says, or not a tenant's.
var ErrStranger = errors.New("not an event of an order or a courier")

// Route maps records of [Topics] to channels.
//
// While the registry cannot be asked it waits: a record it gave up would be
// missing from every open page.
func Route(d Decoder) push.Route {
	return func(ctx context.Context, rec *kgo.Record, env *event.Envelope) ([]push.Delivery, error) {
		data, known := contracts.New(env.Type)
		if !known {
			return nil, nil // a type newer than this program
		}
		if env.Type == located && env.Tenant == tenants.Platform.String() {
			return nil, nil // a courier without an order: nobody may see that one, and most are
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
	key, err := uuid.Parse(data.EventKey())
	if err != nil || data.EventKey() != env.Subject {
		return nil, fmt.Errorf("%w: subject %.64q, key %.64q", ErrStranger, env.Subject, data.EventKey())
	}
	switch d := data.(type) {
	case *contracts.OrderCreated, *contracts.OrderStatusChanged, *contracts.OrderDelivered:
		return ofOrder(env, data, tenant, key)
	case *contracts.OrderAssigned:
		out, err := ofOrder(env, data, tenant, key)
		if err != nil {
			return nil, err
		}
		return wake(out, env, d.CourierID)
	case *contracts.CourierNotified:
		return wake(nil, env, d.CourierID)
	case *contracts.CourierStatusChanged:
		return wake(nil, env, d.CourierID)
	case *contracts.CourierLocationUpdated:
		return ofPosition(env, d, tenant)
	}
	return nil, nil // nobody's business
}

// ofOrder tells a merchant all of an event, and the public its bare course.
func ofOrder(env *event.Envelope, data event.Data, tenant, order uuid.UUID) ([]push.Delivery, error) {
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
	From        string     `json:"from,omitempty"`
	To          string     `json:"to,omitempty"`
	PickupETA   *time.Time `json:"pickup_eta,omitempty"`
	DeliveryETA *time.Time `json:"delivery_eta,omitempty"`
}

func publicOf(env *event.Envelope, data event.Data) public {
	p := public{Type: env.Type, Time: env.Time, Sequence: env.Sequence}
	switch d := data.(type) {
	case *contracts.OrderStatusChanged:
		p.Data = publicData{From: string(d.From), To: string(d.To)}
	case *contracts.OrderAssigned: // that there is a courier, and not who
		p.Data = publicData{PickupETA: &d.PickupETA, DeliveryETA: &d.DeliveryETA}
	}
	return p
}
