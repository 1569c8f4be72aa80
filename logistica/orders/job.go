package orders

import (
	"time"

	"github.com/google/uuid"
)

// Job is an order as the courier who carries it sees it: with addresses, and
// without prices.
type Job struct {
	Order       uuid.UUID
	Tenant      uuid.UUID
	State       State
	Allowed     []State // where the courier may take it
	Version     int64
	Attempt     int32
	Pickup      Place
	Dropoff     Place
	Customer    Customer
	Items       []TrackedItem
	PromisedAt  *time.Time
	AssignedAt  *time.Time
	PickupETA   *time.Time
	DeliveryETA *time.Time
	DistanceM   *int64 // metres
}
