package notify

import (
	"encoding/json"
	"fmt"
	"math"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/push"
)

var located = contracts.CourierLocationUpdated{}.EventContract().Type

// fresh is how old a fix may be when it is received and still be shown as it
// comes. A device that was out of reach delivers its way afterwards: that is for
// the trail, and on a map it would pull the courier back.
const fresh = 2 * time.Minute

// seenByTenant is all that a merchant hears of a position.
type seenByTenant struct {
	OrderID   uuid.UUID `json:"order_id"`
	CourierID uuid.UUID `json:"courier_id"`
	place
}

// place is all that the public hears of a position.
type place struct {
	Lat        float64   `json:"lat"`
	Lng        float64   `json:"lng"`
	HeadingDeg *float64  `json:"heading_deg,omitempty"`
	FixTime    time.Time `json:"fix_time"`
}

// placeOf rounds to about a metre: what is finer is noise, and longer lines.
func placeOf(d *contracts.CourierLocationUpdated) place {
	p := place{Lat: rounded(d.Lat, 1e5), Lng: rounded(d.Lng, 1e5), FixTime: d.FixTime.UTC()}
	if d.HeadingDeg != nil {
		h := rounded(float64(*d.HeadingDeg), 1)
		p.HeadingDeg = &h
	}
	return p
}

func rounded(v, parts float64) float64 { return math.Round(v*parts) / parts }

// ofPosition shows a courier to those whose order it is out for.
func ofPosition(env *event.Envelope, d *contracts.CourierLocationUpdated, tenant uuid.UUID) ([]push.Delivery, error) {
	if d.ActiveOrderID == nil || d.ReceivedAt.Sub(d.FixTime) > fresh {
		return nil, nil
	}
	if tenant == tenants.Platform {
		return nil, fmt.Errorf("%w: a position with an order and the platform's tenant", ErrStranger)
	}
	order, p := *d.ActiveOrderID, placeOf(d)
	full, err := push.JSON(env, seenByTenant{OrderID: order, CourierID: d.CourierID, place: p})
	if err != nil {
		return nil, err
	}
	bare, err := json.Marshal(struct {
		Type string    `json:"type"`
		Time time.Time `json:"time"`
		Data place     `json:"data"`
	}{env.Type, env.Time, p})
	if err != nil {
		return nil, fmt.Errorf("encode position for the public: %w", err)
	}
	return []push.Delivery{
		{Channel: TenantChannel(tenant), Message: push.Message{Data: full}, Latest: "position/" + order.String()},
		{Channel: OrderChannel(order), Message: push.Message{Data: bare}, Latest: "position"},
	}, nil
}

// wake tells a courier's device that there is something to ask for: of many
// calls only the newest matters.
func wake(others []push.Delivery, env *event.Envelope, courier uuid.UUID) ([]push.Delivery, error) {
	call, err := json.Marshal(struct {
		Type string    `json:"type"`
		Time time.Time `json:"time"`
	}{env.Type, env.Time})
	if err != nil {
		return nil, fmt.Errorf("encode a courier's call: %w", err)
	}
	return append(others, push.Delivery{
		Channel: CourierChannel(courier), Message: push.Message{Data: call}, Latest: "call",
	}), nil
}
