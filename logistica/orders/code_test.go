package orders_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/pg"
)

var toTheDoor = []orders.State{
	orders.PickupOngoing, orders.ArrivedAtMerchant, orders.PickedUp, orders.DeliveryOngoing, orders.ArrivedAtCustomer,
}

// atTheDoor is an order whose courier stands before the customer.
func (b bed) atTheDoor(t testing.TB, tenant uuid.UUID) (orders.Order, uuid.UUID) {
	t.Helper()
	o, s := b.assigned(t, tenant)
	return b.walk(t, tenant, o.ID, toTheDoor...), s.reserved.CourierID
}

// wrong is a code that is not o's.
func wrong(o orders.Order) string {
	if o.Code == "0000" {
		return "0001"
	}
	return "0000"
}

func (b bed) deliver(t testing.TB, courier uuid.UUID, o orders.Order, code string) (orders.Order, *orders.CodeRefused) {
	t.Helper()
	got, err := b.MoveAsCourier(t.Context(), courier, o.ID, orders.Move{To: orders.Delivered}, code)
	var refused *orders.CodeRefused
	if err != nil && !errors.As(err, &refused) {
		t.Fatal(err)
	}
	return got, refused
}

func (b bed) tryWrong(t testing.TB, courier uuid.UUID, o orders.Order) {
	t.Helper()
	if got, refused := b.deliver(t, courier, o, wrong(o)); refused == nil {
		t.Errorf("a wrong code delivers: %+v", got)
	}
}

func TestTheCustomersCodeDelivers(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o, courier := b.atTheDoor(t, tenant)
	for left := orders.MaxCodeTries - 1; left >= 3; left-- {
		if _, refused := b.deliver(t, courier, o, wrong(o)); refused == nil || refused.Left != left || refused.Missing {
			t.Errorf("with a wrong code: %v", refused)
		}
	}
	if _, refused := b.deliver(t, courier, o, ""); refused == nil || !refused.Missing || refused.Left != 3 {
		t.Errorf("without a code: %v", refused)
	}
	got, refused := b.deliver(t, courier, o, string(o.Code))
	if refused != nil || got.State != orders.Delivered || got.Proof != orders.ProofCode {
		t.Fatalf("%+v, %v", got, refused)
	}
	list := b.events(t, o.ID)
	e := decode[contracts.OrderDelivered](t, list[len(list)-1].Body)
	if e.Proof == nil || *e.Proof != "CODE" || e.DistanceM == nil || *e.DistanceM != 4200 || e.Version != got.Version {
		t.Errorf("said %+v", e)
	}
	b.requireGapless(t, b.get(t, tenant, o.ID))
	var forbidden *orders.ForbiddenTransition
	if _, err := b.MoveAsCourier(t.Context(), courier, o.ID, orders.Move{To: orders.Delivered}, string(o.Code)); !errors.As(err, &forbidden) {
		t.Errorf("delivered twice: %v", err)
	}
}

func TestFiveWrongCodesLockUntilTheMerchantActs(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	for name, open := range map[string]func(o orders.Order, courier uuid.UUID) (orders.Order, error){
		"resets": func(o orders.Order, courier uuid.UUID) (orders.Order, error) {
			if _, err := b.ResetCode(t.Context(), tenant, o.ID); err != nil {
				return o, err
			}
			return b.MoveAsCourier(t.Context(), courier, o.ID, orders.Move{To: orders.Delivered}, string(o.Code))
		},
		"confirms": func(o orders.Order, _ uuid.UUID) (orders.Order, error) {
			return b.Transition(t.Context(), tenant, o.ID, orders.Move{To: orders.Delivered, Actor: orders.Merchant})
		},
	} {
		o, courier := b.atTheDoor(t, tenant)
		for _, slip := range []string{"", "123", "12345", "l234", "１２３４"} { // cost nothing
			if _, refused := b.deliver(t, courier, o, slip); refused == nil || !refused.Missing || refused.Left != orders.MaxCodeTries {
				t.Errorf("%q: %+v", slip, refused)
			}
		}
		locked := func() bool {
			jobs, err := b.Jobs(t.Context(), courier)
			if err != nil || len(jobs) != 1 {
				t.Fatalf("%v %v", jobs, err)
			}
			return jobs[0].CodeLocked
		}
		if locked() {
			t.Error("locked before a try")
		}
		for range orders.MaxCodeTries {
			b.tryWrong(t, courier, o)
		}
		_, refused := b.deliver(t, courier, o, string(o.Code))
		if refused == nil || refused.Left != 0 || !strings.Contains(refused.Error(), "merchant") {
			t.Errorf("the right code after five wrong ones: %v", refused)
		}
		if now := b.get(t, tenant, o.ID); now.State != orders.ArrivedAtCustomer || now.Version != o.Version || now.CodeTries != orders.MaxCodeTries {
			t.Errorf("locked: %+v", now)
		}
		if !locked() {
			t.Error("the courier is not told that it is locked")
		}
		got, err := open(o, courier)
		want := map[string]string{"resets": "CODE", "confirms": "MERCHANT"}[name]
		if err != nil || got.State != orders.Delivered || got.Proof != want {
			t.Errorf("the merchant %s: %+v, %v", name, got, err)
		}
	}
}

// Who sends many codes at once must not get more tries than five.
func TestRacingCodesAreCountedEach(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o, courier := b.atTheDoor(t, tenant)
	var all sync.WaitGroup
	for range 30 {
		all.Go(func() { b.tryWrong(t, courier, o) })
	}
	all.Wait()
	if now := b.get(t, tenant, o.ID); now.CodeTries != orders.MaxCodeTries || now.State != orders.ArrivedAtCustomer {
		t.Errorf("%+v", now)
	}
}

// A code is looked at where it delivers, and nowhere else: in no other state
// does an answer tell a right one from a wrong one.
func TestNoOtherMoveTriesTheCode(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o, s := b.assigned(t, tenant)
	for _, to := range toTheDoor {
		_, right := b.MoveAsCourier(t.Context(), s.reserved.CourierID, o.ID, orders.Move{To: orders.Delivered}, string(o.Code))
		_, bad := b.MoveAsCourier(t.Context(), s.reserved.CourierID, o.ID, orders.Move{To: orders.Delivered}, wrong(o))
		if right == nil || bad == nil || right.Error() != bad.Error() {
			t.Errorf("before %s: %v, %v", to, right, bad)
		}
		moved, err := b.MoveAsCourier(t.Context(), s.reserved.CourierID, o.ID, orders.Move{To: to}, wrong(o))
		if err != nil || moved.State != to || moved.CodeTries != 0 {
			t.Fatalf("to %s: %+v, %v", to, moved, err)
		}
	}
	_, err := b.Transition(t.Context(), tenant, o.ID, orders.Move{To: orders.Delivered, Actor: orders.Courier})
	var refused *orders.CodeRefused
	if !errors.As(err, &refused) {
		t.Errorf("a courier delivers by the merchant's door: %v", err)
	}
}

func TestTheCodeIsInNoEventLogOrText(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	o, courier := b.atTheDoor(t, tenant)
	const code = "code-of-this-order" // four digits would be found in ids
	o.Code = code
	var log strings.Builder
	slog.New(slog.NewJSONHandler(&log, nil)).InfoContext(t.Context(), "order", "order", o, "code", o.Code)
	slog.New(slog.NewTextHandler(&log, nil)).InfoContext(t.Context(), "order", "order", o, "code", o.Code)
	if text := fmt.Sprintf("%v %+v %#v %s %q %s", o, o, o.Code, o.Code, o.Code, &log); strings.Contains(text, code) {
		t.Errorf("told: %s", text)
	}
	if text, err := json.Marshal(o); err == nil {
		t.Errorf("written: %s", text)
	}
	o = b.get(t, tenant, o.ID)
	if _, refused := b.deliver(t, courier, o, string(o.Code)); refused != nil {
		t.Fatal(refused)
	}
	for _, e := range b.events(t, o.ID) { // text is all that could carry it; ids have such digits by chance
		switch e.Type {
		case "logistica.orders.OrderStatusChanged":
			if changed := decode[contracts.OrderStatusChanged](t, e.Body); changed.Reason != nil {
				t.Errorf("the change to %s gives a reason: %s", changed.To, *changed.Reason)
			}
		case "logistica.orders.OrderDelivered":
			if delivered := decode[contracts.OrderDelivered](t, e.Body); *delivered.Proof != "CODE" {
				t.Errorf("the proof is %s", *delivered.Proof)
			}
		}
	}
}

func TestCodesAreFourDigitsAndRandom(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	seen := map[orders.Code]bool{}
	for range 100 {
		seen[b.create(t, tenant).Code] = true
	}
	b.fill(t, tenant, 100) // as a program of the version before does, and as the migration did
	err := pg.InTenant(t.Context(), b.pool, tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT delivery_code FROM orders.orders`)
		if err != nil {
			return err
		}
		codes, err := pgx.CollectRows(rows, pgx.RowTo[string])
		for _, code := range codes {
			if len(code) != 4 || strings.Trim(code, "0123456789") != "" {
				t.Errorf("code %q", code)
			}
			seen[orders.Code(code)] = true
		}
		return err
	})
	if err != nil || len(seen) < 180 { // of 200; even one in ten thousand is further off
		t.Errorf("%d different codes, %v", len(seen), err)
	}
}
