package orders_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/orders"
)

func TestADayComesInPagesEachOrderOnce(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, orders.Config{}), event.NewID()
	b.fill(t, tenant, 2500)
	b.fill(t, event.NewID(), 10)
	o, s := b.assigned(t, tenant)
	seen, pages := map[uuid.UUID]bool{}, 0
	now := time.Now()
	err := b.Day(t.Context(), tenant, now.Add(-time.Hour), now.Add(time.Hour), func(page []orders.DayRow) error {
		pages++
		for _, row := range page {
			if seen[row.ID] {
				t.Errorf("%s twice", row.ID)
			}
			seen[row.ID] = true
			if row.ID == o.ID && (row.Fee == nil || *row.Fee != 150 || row.Courier != s.reserved.CourierID || row.DeliveredAt != nil) {
				t.Errorf("%+v", row)
			}
		}
		return nil
	})
	if err != nil || len(seen) != 2501 || pages != 3 {
		t.Errorf("%d orders in %d pages, %v", len(seen), pages, err)
	}
	full := errors.New("the client left")
	err = b.Day(t.Context(), tenant, now.Add(-time.Hour), now.Add(time.Hour), func([]orders.DayRow) error { return full })
	if !errors.Is(err, full) {
		t.Errorf("who takes fails, and it says %v", err)
	}
	err = b.Day(t.Context(), tenant, now.Add(time.Hour), now.Add(2*time.Hour), func([]orders.DayRow) error { return full })
	if err != nil {
		t.Errorf("a day without orders: %v", err)
	}
}
