package couriers_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/outbox"
)

// Left alone, the module ends what nobody else does: a reservation that is not
// confirmed and a wait that is too long.
func TestTheSweepEndsWhatNobodyElseEnds(t *testing.T) {
	t.Parallel()
	b, shop, lonely := newBed(t), event.NewID(), event.NewID()
	rui := b.enrol(t, shop)
	expires, gone := b.create(t, shop), b.create(t, lonely)
	stop := b.sweeping(t, 50*time.Millisecond)
	b.eventually(t, expires, "reserved 1, asked 1 EXPIRED")
	b.eventually(t, gone, "failed 1 NO_COURIER final=false, failed 1 NO_COURIER final=true")
	stop()
	b.letGo(t, shop, expires, 2, "EXPIRED")
	b.requireState(t, rui, couriers.Available)
	b.requireGapless(t)
}

// What was confirmed while nobody listened is heard before anything expires.
func TestNothingExpiresRightAfterAStart(t *testing.T) {
	t.Parallel()
	b, shop := newBed(t), event.NewID()
	rui := b.enrol(t, shop)
	order, gone := b.create(t, shop), b.create(t, event.NewID())
	stop := b.sweeping(t, time.Hour)
	b.eventually(t, gone, "failed 1 NO_COURIER final=false, failed 1 NO_COURIER final=true") // it sweeps
	stop()
	b.assign(t, shop, order, rui, 1)
	b.requireState(t, rui, couriers.Busy)
}

// sweeping runs another process of the module, an hour later.
func (b *bed) sweeping(t *testing.T, hold time.Duration) (stop func()) {
	t.Helper()
	later := b.time.Add(time.Hour)
	m := couriers.New(b.pool, outbox.New(contracts.All(), outbox.Config{}), couriers.Config{
		Hold: hold, Sweep: 10 * time.Millisecond, Now: func() time.Time { return later },
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func (b *bed) eventually(t *testing.T, order uuid.UUID, want string) {
	t.Helper()
	until(t, func() bool { return b.tale(t, order) == want }, func() string {
		return fmt.Sprintf("said %q, want %q", b.tale(t, order), want)
	})
}

// until asks every 10 ms, for a minute at most.
func until(t *testing.T, ok func() bool, otherwise func() string) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(time.Minute)
	for !ok() {
		select {
		case <-tick.C:
		case <-late:
			t.Fatal(otherwise())
		}
	}
}
