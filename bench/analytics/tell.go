package analytics

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/registry"
)

// told makes the events of orders as the product tells them.
type told struct {
	ids     map[int64]int // schema ids by the contracts' fingerprints
	tenants []uuid.UUID
}

const merchants = 100

func newTold(ids map[int64]int) *told {
	t := &told{ids: ids, tenants: make([]uuid.UUID, merchants)}
	for i := range t.tenants {
		t.tenants[i] = event.NewID()
	}
	return t
}

// together is how many orders are on their way at a time: one's events are far
// apart, as in life.
const together = 2000

// eventsOfOrder is how many life tells of each.
const eventsOfOrder = 17

// life is the events of one order that is delivered, in their order.
func life(order, courier uuid.UUID, created time.Time) (out []event.Data) {
	promised, fee := created.Add(45*time.Minute), event.NewID()
	place := contracts.CoarsePlace{District: "Bela Vista", Lat: -23.561, Lng: -46.656}
	out = append(out,
		contracts.OrderCreated{OrderID: order, Version: 1, Items: []contracts.OrderItem{{Name: "Pão de queijo", Quantity: 6, UnitPrice: 315}}, Total: 1890, Currency: "BRL", Pickup: place, Dropoff: place, PromisedAt: &promised},
		contracts.CourierReserved{OrderID: order, Version: 1, Attempt: 1, CourierID: courier, VehicleType: "MOTORBIKE", ReservedUntil: promised, PickupETA: promised, DeliveryETA: promised, DistanceM: 4200},
		contracts.CourierStatusChanged{CourierID: courier, Version: 2, From: "AVAILABLE", To: "RESERVED", OrderID: &order},
		contracts.PlatformFeeBilled{OrderID: order, Version: 1, Attempt: 1, FeeID: fee, CourierID: courier, Amount: 290, Currency: "BRL"},
		contracts.CourierNotified{OrderID: order, Version: 1, Attempt: 1, CourierID: courier, FeeID: fee})
	version, at := int64(1), contracts.OrderStateCreated
	for _, to := range []contracts.OrderState{"ASSIGNING", "ASSIGNED", "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED"} {
		version++
		out = append(out, contracts.OrderStatusChanged{OrderID: order, Version: version, From: at, To: to, Actor: "COURIER"})
		if at = to; to == "ASSIGNED" {
			version++
			out = append(out, contracts.OrderAssigned{OrderID: order, Version: version, CourierID: courier, Attempt: 1, FeeID: fee, PickupETA: promised, DeliveryETA: promised},
				contracts.CourierStatusChanged{CourierID: courier, Version: 3, From: "RESERVED", To: "BUSY", OrderID: &order})
		}
	}
	return append(out,
		contracts.OrderDelivered{OrderID: order, Version: version + 1, DurationMs: 2_400_000},
		contracts.CourierStatusChanged{CourierID: courier, Version: 4, From: "BUSY", To: "AVAILABLE", OrderID: &order})
}

// record is an event of a tenant as the relay publishes it.
func (t *told) record(ctx context.Context, tenant uuid.UUID, at time.Time, d event.Data) (*kgo.Record, error) {
	c := d.EventContract()
	if c.Topic == "couriers.events" {
		tenant = tenants.Platform
	}
	value, err := c.Schema.AppendEncode(registry.AppendHeader(nil, t.ids[c.Fingerprint]), d)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", c.Type, err)
	}
	env := c.Envelope(event.WithTenant(ctx, tenant.String()), d, at)
	rec := &kgo.Record{Topic: c.Topic, Key: []byte(env.Subject), Value: value}
	env.Headers(func(name, v string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(v)})
	})
	return rec, nil
}

// publish tells of whole orders, those that are on their way in turns.
func (r *run) publish(ctx context.Context) error {
	cl, err := r.engines.Broker.Client(kgo.RecordPartitioner(kgo.StickyKeyPartitioner(nil)))
	if err != nil {
		return err
	}
	defer cl.Close()
	orders := (r.cfg.Events + eventsOfOrder - 1) / eventsOfOrder
	for from := int64(0); from < orders; from += together {
		n := min(together, orders-from)
		lives, created := make([][]event.Data, n), time.Now().Add(-40*time.Minute)
		for i := range lives {
			lives[i] = life(event.NewID(), event.NewID(), created)
		}
		var recs []*kgo.Record
		for step := range lives[0] {
			at := created.Add(time.Duration(step) * 2 * time.Minute)
			for i := range lives {
				rec, err := r.told.record(ctx, r.told.tenants[(from+int64(i))%merchants], at, lives[i][step])
				if err != nil {
					return err
				}
				recs = append(recs, rec)
			}
		}
		if err := cl.ProduceSync(ctx, recs...).FirstErr(); err != nil {
			return err
		}
		r.res.Events += int64(len(recs))
	}
	r.res.Orders = orders
	return nil
}
