package analytics

import (
	"time"
	_ "time/tzdata" // a machine without time zones has the same days

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
)

// delta is what a batch of events changes, added up so that each row is written
// once.
type delta struct {
	lane    int16
	count   map[stateKey]int64
	hours   map[hourKey]int64
	minutes map[minuteKey]int64
	fees    map[feeKey]feeSum
	orders  map[uuid.UUID]*milestones
	duty    []dutyChange
	duties  map[uuid.UUID]duty // as they were, then as they are
	time    map[dutyHour]int64 // ms
}

type (
	stateKey struct {
		tenant uuid.UUID
		state  string
	}
	hourKey struct {
		tenant uuid.UUID
		hour   time.Time
		state  string
	}
	minuteKey struct {
		tenant uuid.UUID
		minute time.Time
	}
	feeKey struct {
		tenant   uuid.UUID
		day      time.Time
		currency string
	}
	feeSum struct{ fees, billed, voids, voided int64 }
)

// milestones are moments of an order, nil where the batch says nothing of them.
type milestones struct {
	tenant                                           uuid.UUID
	created, promised, assigned, pickedUp, delivered *time.Time
}

func newDelta(partition int32) *delta {
	return &delta{
		lane: int16(partition % 1024), count: map[stateKey]int64{}, hours: map[hourKey]int64{}, minutes: map[minuteKey]int64{},
		fees: map[feeKey]feeSum{}, orders: map[uuid.UUID]*milestones{}, duties: map[uuid.UUID]duty{}, time: map[dutyHour]int64{},
	}
}

func (d *delta) add(tenant uuid.UUID, at time.Time, data event.Data) {
	at = at.UTC().Truncate(time.Microsecond) // as the database keeps it
	switch e := data.(type) {
	case *contracts.OrderCreated:
		d.enter(tenant, at, string(contracts.OrderStateCreated))
		d.minutes[minuteKey{tenant, at.Truncate(time.Minute)}]++
		o := d.order(tenant, e.OrderID)
		o.created, o.promised = &at, e.PromisedAt
	case *contracts.OrderStatusChanged:
		d.count[stateKey{tenant, string(e.From)}]--
		d.enter(tenant, at, string(e.To))
		d.pass(tenant, e.OrderID, e.To, at)
	case *contracts.PlatformFeeBilled:
		d.fee(tenant, at, e.Currency, feeSum{fees: 1, billed: e.Amount})
	case *contracts.PlatformFeeVoided:
		d.fee(tenant, at, e.Currency, feeSum{voids: 1, voided: e.Amount})
	case *contracts.CourierStatusChanged:
		d.duty = append(d.duty, dutyChange{e.CourierID, duty{e.Version, string(e.To), at}})
	}
}

func (d *delta) enter(tenant uuid.UUID, at time.Time, state string) {
	d.count[stateKey{tenant, state}]++
	d.hours[hourKey{tenant, at.Truncate(time.Hour), state}]++
}

// pass notes the states that are milestones.
func (d *delta) pass(tenant, order uuid.UUID, to contracts.OrderState, at time.Time) {
	switch to { //nolint:exhaustive // the others are none, and a state that is newer than this program is none either
	case contracts.OrderStateAssigned:
		d.order(tenant, order).assigned = &at
	case contracts.OrderStatePickedUp:
		d.order(tenant, order).pickedUp = &at
	case contracts.OrderStateDelivered:
		d.order(tenant, order).delivered = &at
	}
}

func (d *delta) order(tenant, id uuid.UUID) *milestones {
	o := d.orders[id]
	if o == nil {
		o = &milestones{tenant: tenant}
		d.orders[id] = o
	}
	return o
}

func (d *delta) fee(tenant uuid.UUID, at time.Time, currency string, add feeSum) {
	k := feeKey{tenant, DayOf(at), currency}
	s := d.fees[k]
	d.fees[k] = feeSum{s.fees + add.fees, s.billed + add.billed, s.voids + add.voids, s.voided + add.voided}
}

// DayZone is where a merchant's day begins and ends.
const DayZone = "America/Sao_Paulo"

var zone = func() *time.Location {
	loc, err := time.LoadLocation(DayZone)
	if err != nil {
		panic(err) // time/tzdata has it
	}
	return loc
}()

// DayOf is the day of at in [DayZone], as midnight UTC of the same date.
func DayOf(at time.Time) time.Time {
	y, m, day := at.In(zone).Date()
	return time.Date(y, m, day, 0, 0, 0, 0, time.UTC)
}
