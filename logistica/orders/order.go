package orders

import (
	"time"

	"github.com/google/uuid"
)

// Place is where goods are collected or received: personal data where it is a
// customer's.
type Place struct {
	Street    string  `json:"street"`
	Number    string  `json:"number"`
	CEP       string  `json:"cep"`
	District  string  `json:"district"`
	Lat       float64 `json:"lat"`
	Lng       float64 `json:"lng"`
	Reference string  `json:"reference,omitempty"`
}

// Customer is who receives an order: personal data, and empty where the
// merchant keeps it to itself.
type Customer struct {
	Name  string `json:"name,omitempty"`
	Phone string `json:"phone,omitempty"`
}

// Item is one line of an order.
type Item struct {
	Name      string `json:"name"`
	Quantity  int32  `json:"quantity"`
	UnitPrice int64  `json:"unit_price"` // centavos
}

// NewOrder is what a merchant asks for.
type NewOrder struct {
	Pickup     Place      `json:"pickup"`
	Dropoff    Place      `json:"dropoff"`
	Customer   Customer   `json:"customer"`
	Items      []Item     `json:"items"`
	PromisedAt *time.Time `json:"promised_at,omitempty"`
}

// Order is an order as its merchant sees it.
type Order struct {
	ID            uuid.UUID // UUIDv7: orders of one tenant sort by it, oldest first
	Tenant        uuid.UUID
	TrackingToken string // opens the public view; whoever holds it may look
	State         State
	Version       int64     // counts events: each transition adds one, and one more where it assigns or delivers
	Attempt       int32     // which search for a courier this is, from 1
	Courier       uuid.UUID // who carries it, uuid.Nil while nobody does
	Code          Code      // what the customer tells the courier at the door
	CodeTries     int32     // how often it was told wrong since the merchant reset it
	DistanceM     *int64    // to be driven, in metres, known once a courier is assigned
	Proof         string    // what showed the delivery, [ProofCode] or [ProofMerchant]; empty before
	Pickup        Place
	Dropoff       Place
	Customer      Customer
	Items         []Item
	Total         int64 // centavos
	Currency      string
	PromisedAt    *time.Time
	CreatedAt     time.Time
	UpdatedAt     time.Time

	// Assignment is what is known of the search under way, nil while that is
	// nothing.
	Assignment *Assignment

	firstAttempt int32 // the one that tries are counted from
}

// tries is how many searches there were since somebody asked for one.
func (o Order) tries() int { return int(o.Attempt - o.firstAttempt + 1) }

// Currency of every order: the product works in Brazil.
const Currency = "BRL"

// asCreated is the order as it was when it was made. Nothing else of an order
// changes, its code included, so a repeated request is answered from the row
// itself and the customer's data are not kept a second time.
func (o Order) asCreated() Order {
	o.State, o.Version, o.UpdatedAt = Created, 1, o.CreatedAt
	o.Attempt, o.firstAttempt, o.Courier, o.Assignment = 1, 1, uuid.Nil, nil
	o.CodeTries, o.DistanceM, o.Proof = 0, nil, ""
	return o
}

// Tracking is what anybody holding an order's tracking link may see: no
// personal data, no prices.
type Tracking struct {
	OrderID    uuid.UUID
	Tenant     uuid.UUID
	State      State
	Version    int64
	Items      []TrackedItem
	PromisedAt *time.Time
	Timeline   []Moment // oldest first, beginning with CREATED
	Code       Code     // for the customer to tell at the door

	// Where it goes from and to, to about a hundred metres: the link may be
	// passed on, and shows a way and no door.
	Pickup, Dropoff Coarse

	// The courier, where the order has one.
	Courier     uuid.UUID
	Vehicle     string
	PickupETA   *time.Time
	DeliveryETA *time.Time
}

// Coarse is a place without its address, in thousandths of a degree.
type Coarse struct{ Lat, Lng float64 }

// TrackedItem is a line of an order without its price.
type TrackedItem struct {
	Name     string
	Quantity int32
}

// Moment is when an order reached a state.
type Moment struct {
	State State     `json:"state"`
	At    time.Time `json:"at"`
}
