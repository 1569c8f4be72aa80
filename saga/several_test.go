package saga

import (
	"fmt"
	"testing"
	"time"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/saga/contracts"
)

// An event may mean one thing to one saga and another to the next, and end one
// round by what begins another.
func TestAnEventMayMeanSeveralThings(t *testing.T) {
	w := newWorld(t)
	trips := trip(never)
	trips.Steps[0].Failed = Either(trips.Steps[0].Failed, On(func(e event.Of[tripRequested]) int { return int(e.Data.Attempt) - 1 }))
	payments := Saga{
		Name:  "a-payment",
		Start: Either(On(attempt[takenKind]), On(attempt[noMailKind])),
		Abort: On(func(event.Of[tripCancelled]) int { return EveryRound }),
		Steps: []Step{{Name: "pay", Done: On(attempt[chargedKind]), Undone: On(attempt[refundedKind]), Within: -1}},
	}
	o, err := New(Deps{DB: w.db, Client: w.engine.Config.Client, Decoder: plain{}, Outbox: outbox.New(contracts.All(), outbox.Config{})},
		Config{Group: w.group, Every: 20 * time.Millisecond, Filter: consumer.Filter{Tenants: []string{w.tenant}}}, trips, payments)
	w.must(err)
	w.run(o)
	const n = 30
	for i := range n {
		k := fmt.Sprint("trip-", i)
		w.publish(tripRequested{k, 1}, seatTaken{k, 1}, cardCharged{k, 1}, tripRequested{k, 2}, seatTaken{k, 2}, cardCharged{k, 2}, tripCancelled{k, 0},
			cardRefunded{k, 1}, seatFreed{k, 1}, cardRefunded{k, 2}, seatFreed{k, 2})
	}
	w.until("all of both are undone", func() bool {
		return w.number(`SELECT count(*) FROM saga.instances WHERE saga = 'book-trip' AND state = 'compensated'`) == 2*n &&
			w.number(`SELECT count(*) FROM saga.instances WHERE saga = 'a-payment' AND state = 'compensated'`) == 2*n
	})
	if d := w.get("trip-0", 1); !has(d.Entries, Failed, "seat", "") {
		t.Error("the second round did not end the first")
	}
	page, err := List(t.Context(), w.db, Filter{Tenant: w.tenant, Key: "trip-0", Saga: "a-payment"})
	if err != nil || len(page.Instances) != 2 || page.Instances[0].DueAt != nil {
		t.Errorf("%+v %v", page, err)
	}
}
