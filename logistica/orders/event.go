package orders

import (
	"math"

	"github.com/waybillhq/waybill/logistica/contracts"
)

func createdEvent(o Order) contracts.OrderCreated {
	items := make([]contracts.OrderItem, len(o.Items))
	for i, item := range o.Items {
		items[i] = contracts.OrderItem{Name: item.Name, Quantity: item.Quantity, UnitPrice: item.UnitPrice}
	}
	return contracts.OrderCreated{
		OrderID: o.ID, Version: o.Version, Items: items, Total: o.Total, Currency: o.Currency,
		Pickup: coarse(o.Pickup), Dropoff: coarse(o.Dropoff), PromisedAt: o.PromisedAt,
	}
}

func changedEvent(o Order, from State, m Move) contracts.OrderStatusChanged {
	e := contracts.OrderStatusChanged{
		OrderID: o.ID, Version: o.Version, From: contracts.OrderState(from), To: contracts.OrderState(o.State),
		Actor: contracts.Actor(m.Actor), Attempt: &o.Attempt,
	}
	if m.Reason != "" {
		e.Reason = &m.Reason
	}
	return e
}

func assignedEvent(o Order) contracts.OrderAssigned {
	a := o.Assignment
	return contracts.OrderAssigned{
		OrderID: o.ID, Version: o.Version, CourierID: o.Courier, Attempt: o.Attempt,
		FeeID: *a.FeeID, PickupETA: *a.PickupETA, DeliveryETA: *a.DeliveryETA,
	}
}

// deliveredEvent says how the delivery was shown, never the code itself.
func deliveredEvent(o Order) contracts.OrderDelivered {
	e := contracts.OrderDelivered{
		OrderID: o.ID, Version: o.Version, DurationMs: o.duration().Milliseconds(), DistanceM: o.DistanceM,
	}
	if o.Proof != "" {
		e.Proof = &o.Proof
	}
	return e
}

// coarse is all of a place that the log may know: it is replayable and read by
// many, so it holds no address.
func coarse(p Place) contracts.CoarsePlace {
	return contracts.CoarsePlace{District: p.District, Lat: thousandth(p.Lat), Lng: thousandth(p.Lng)}
}

func thousandth(degrees float64) float64 { return math.Round(degrees*1000) / 1000 }
