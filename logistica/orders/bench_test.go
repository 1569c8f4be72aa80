package orders_test

import (
	"testing"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/orders"
)

// The test server runs without fsync, so these show what a request costs the
// processors, not the disk.

func BenchmarkCreate(b *testing.B) {
	bed, tenant := newBed(b, orders.Config{}), event.NewID()
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if _, _, err := bed.Create(b.Context(), tenant, newOrder(), event.NewID().String()); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkTransition(b *testing.B) {
	bed, tenant := newBed(b, orders.Config{}), event.NewID()
	o := bed.create(b, tenant)
	to := orders.Assigning
	for b.Loop() {
		if _, err := bed.Transition(b.Context(), tenant, o.ID, orders.Move{To: to, Actor: orders.System}); err != nil {
			b.Fatal(err)
		}
		if to == orders.Assigning {
			to = orders.Created
		} else {
			to = orders.Assigning
		}
	}
}
