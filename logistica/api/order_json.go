package api

import (
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/orders"
)

// Place is a place as the API writes it.
type Place struct {
	Street    string  `json:"street" doc:"At most 120 characters, like every text here."`
	Number    string  `json:"number" doc:"Of the building; at most 20 characters."`
	CEP       string  `json:"cep" doc:"Postal code." example:"01310-200"`
	District  string  `json:"district" doc:"Neighbourhood."`
	Lat       float64 `json:"lat" doc:"Degrees, -90 to 90."`
	Lng       float64 `json:"lng" doc:"Degrees, -180 to 180."`
	Reference string  `json:"reference,omitempty" doc:"What helps to find it."`
}

// Customer is who receives the order.
type Customer struct {
	Name  string `json:"name,omitempty"`
	Phone string `json:"phone,omitempty" example:"+55 11 91234-5678"`
}

// Item is one line of an order.
type Item struct {
	Name      string `json:"name"`
	Quantity  int32  `json:"quantity" minimum:"1" maximum:"10000"`
	UnitPrice int64  `json:"unit_price" minimum:"0" maximum:"100000000000000" doc:"Centavos."`
}

// NewOrder is the body of a new order.
type NewOrder struct {
	Pickup     Place      `json:"pickup" doc:"Where the courier collects."`
	Dropoff    Place      `json:"dropoff" doc:"Where the customer receives."`
	Customer   *Customer  `json:"customer,omitempty" doc:"Personal data: kept with the order, never part of an event."`
	Items      []Item     `json:"items" nullable:"false" doc:"1 to 100 lines."`
	PromisedAt *time.Time `json:"promised_at,omitempty" doc:"When the customer was told to expect it; in the future."`
}

// Order is an order as its merchant sees it.
type Order struct {
	ID            uuid.UUID  `json:"id" format:"uuid"`
	State         string     `json:"state" doc:"Where it stands."`
	OpenDelivery  string     `json:"open_delivery_state" doc:"The state by its name in Open Delivery 1.3."`
	Allowed       []string   `json:"allowed" nullable:"false" doc:"Where the merchant may take it from here."`
	Version       int64      `json:"version" doc:"Counts its events."`
	TrackingToken string     `json:"tracking_token" doc:"Opens the public view; whoever has it may look."`
	TrackingURL   string     `json:"tracking_url" format:"uri-reference" doc:"The customer's page."`
	Pickup        Place      `json:"pickup"`
	Dropoff       Place      `json:"dropoff"`
	Customer      Customer   `json:"customer"`
	Items         []Item     `json:"items" nullable:"false"`
	Total         int64      `json:"total" doc:"Centavos."`
	Currency      string     `json:"currency"`
	PromisedAt    *time.Time `json:"promised_at,omitempty"`
	CreatedAt     time.Time  `json:"created_at"`
	UpdatedAt     time.Time  `json:"updated_at"`

	Attempt      int32        `json:"attempt" doc:"Which search for a courier this is, from 1."`
	Courier      *CourierCard `json:"courier,omitempty" doc:"Who carries it."`
	PickupETA    *time.Time   `json:"pickup_eta,omitempty" doc:"When the courier is expected at the merchant."`
	DeliveryETA  *time.Time   `json:"delivery_eta,omitempty" doc:"When the courier is expected at the customer."`
	DistanceM    *int64       `json:"distance_m,omitempty" doc:"To be driven, in metres, estimated."`
	Fee          *Fee         `json:"fee,omitempty" doc:"What the platform bills for this attempt, while that stands."`
	DeliveryCode string       `json:"delivery_code" doc:"Four digits that the customer tells the courier. Not for the courier's eyes."`
	CodeTries    int32        `json:"delivery_code_tries" doc:"How often the courier gave a wrong one; after five none is taken until the merchant resets that."`
	Proof        string       `json:"proof,omitempty" doc:"What showed the delivery: CODE or MERCHANT."`

	History []Change `json:"history,omitempty" doc:"Each change of its state since it was created, oldest first; the newest 200; with history=true."`
}

// Fee is the platform's fee for an order.
type Fee struct {
	ID       uuid.UUID `json:"id" format:"uuid"`
	Amount   int64     `json:"amount" doc:"Centavos."`
	Currency string    `json:"currency"`
}

func (n NewOrder) domain() orders.NewOrder {
	d := orders.NewOrder{
		Pickup: orders.Place(n.Pickup), Dropoff: orders.Place(n.Dropoff), PromisedAt: n.PromisedAt,
		Items: make([]orders.Item, len(n.Items)),
	}
	if n.Customer != nil {
		d.Customer = orders.Customer(*n.Customer)
	}
	for i, item := range n.Items {
		d.Items[i] = orders.Item(item)
	}
	return d
}

// orderJSON is an order with its courier as cards know them.
func orderJSON(o orders.Order, cards map[uuid.UUID]CourierCard) Order {
	items := make([]Item, len(o.Items))
	for i, item := range o.Items {
		items[i] = Item(item)
	}
	out := Order{
		ID: o.ID, State: string(o.State), OpenDelivery: orders.OpenDelivery(o.State),
		Allowed: names(orders.Allowed(o.State, orders.Merchant)), Version: o.Version,
		TrackingToken: o.TrackingToken, TrackingURL: "/track/" + o.TrackingToken,
		Pickup: Place(o.Pickup), Dropoff: Place(o.Dropoff), Customer: Customer(o.Customer),
		Items: items, Total: o.Total, Currency: o.Currency, PromisedAt: o.PromisedAt,
		CreatedAt: o.CreatedAt, UpdatedAt: o.UpdatedAt, Attempt: o.Attempt, DistanceM: o.DistanceM,
		DeliveryCode: string(o.Code), CodeTries: o.CodeTries, Proof: o.Proof,
	}
	out.assign(o, cards)
	return out
}

// assign adds what is known of the attempt that counts.
func (out *Order) assign(o orders.Order, cards map[uuid.UUID]CourierCard) {
	a := o.Assignment
	if id, amount, currency, standing := a.Fee(); standing {
		out.Fee = &Fee{id, amount, currency}
	}
	if o.Courier == uuid.Nil {
		return
	}
	card := cards[o.Courier]
	card.ID = o.Courier
	if a != nil {
		out.PickupETA, out.DeliveryETA = a.PickupETA, a.DeliveryETA
		if card.Vehicle == "" && a.Vehicle != nil {
			card.Vehicle = *a.Vehicle
		}
	}
	out.Courier = &card
}
