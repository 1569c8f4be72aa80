package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/saga"
)

// attempts is after how many an order is given up.
const attempts = 3

// heard is longer than a process takes to hear of a fault, also if one of its
// looks at the database comes to nothing.
const heard = 3 * time.Second

// Saga plays one order that gets its courier, and one whose couriers cannot be
// told.
func Saga(ctx context.Context, p Product, out io.Writer) (err error) {
	h, err := open(ctx, p, 1+attempts, out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close(ctx)) }()
	first, err := h.assigns(ctx)
	if err != nil {
		return err
	}
	second, err := h.compensates(ctx)
	if err != nil {
		return err
	}
	return h.compare(ctx, first, second)
}

// assigns is an order that all goes well with.
func (h *house) assigns(ctx context.Context) (order uuid.UUID, err error) {
	h.line("\n1  an order is placed, and each module reacts to what another said\n")
	if order, _, err = h.place(ctx); err != nil {
		return order, err
	}
	if err := h.reaches(ctx, order, "ASSIGNED"); err != nil {
		return order, err
	}
	d, err := h.round(ctx, order, 1, saga.Completed)
	if err != nil {
		return order, err
	}
	h.line("%s", saga.Timeline(d, time.Now()))
	return order, tells(d, "OrderCreated", "CourierReserved", "PlatformFeeBilled", "CourierNotified", "OrderAssigned")
}

// compensates is an order whose couriers are never reached.
func (h *house) compensates(ctx context.Context) (order uuid.UUID, err error) {
	h.line("2  waybill fault set %s 100: no courier can be told, the next order is taken back\n", faults.NotificationFailure)
	if _, err := faults.New(h.engines.DB, faults.Config{}).Set(ctx, faults.NotificationFailure, 100, 0, "the demonstration"); err != nil {
		return order, err
	}
	select {
	case <-time.After(heard):
	case <-ctx.Done():
		return order, ctx.Err()
	}
	if order, _, err = h.place(ctx); err != nil {
		return order, err
	}
	if err := h.reaches(ctx, order, "UNASSIGNABLE"); err != nil {
		return order, err
	}
	for n := 1; n <= attempts; n++ {
		d, err := h.round(ctx, order, n, saga.Compensated)
		if err != nil {
			return order, err
		}
		if n == 1 {
			h.line("%s\nit is tried with other couriers, to the same end:", saga.Timeline(d, time.Now()))
		} else {
			h.line("round %d, %s: %s", n, d.State, said(d))
		}
		if err := tells(d, "CourierReserved", "PlatformFeeBilled", "CourierNotificationFailed", "PlatformFeeVoided", "CourierReleased"); err != nil {
			return order, err
		}
	}
	h.line("")
	return order, nil
}

// tells holds an instance against the events that it must have.
func tells(d saga.Detail, want ...string) error {
	names := strings.Split(said(d), " > ")
	for _, w := range want {
		if !slices.Contains(names, w) {
			return fmt.Errorf("round %d of order %s has no %s: %s", d.Round, d.Key, w, said(d))
		}
	}
	return nil
}

// compare shows the books of both.
func (h *house) compare(ctx context.Context, first, second uuid.UUID) error {
	h.line("3  the books of each module\n")
	one, err := h.book(ctx, first)
	if err != nil {
		return err
	}
	two, err := h.book(ctx, second)
	if err != nil {
		return err
	}
	h.table(
		[]string{"", "first order", "second order"},
		[]string{"orders", one.State, two.State},
		[]string{"attempts", fmt.Sprint(one.Attempt), fmt.Sprint(two.Attempt)},
		[]string{"couriers: reservations", strings.Join(one.Reservations, ", "), strings.Join(two.Reservations, ", ")},
		[]string{"billing: fees", strings.Join(one.Fees, ", "), strings.Join(two.Fees, ", ")},
		[]string{"owed", reais(one.Owed), reais(two.Owed)})
	err = errors.Join(
		one.must(book{"ASSIGNED", 1, []string{"CONFIRMED"}, []string{"BILLED"}, one.Owed}),
		two.must(book{"UNASSIGNABLE", attempts, slices.Repeat([]string{"RELEASED"}, attempts), slices.Repeat([]string{"VOIDED"}, attempts), 0}))
	if err == nil && one.Owed == 0 {
		err = errors.New("nothing is owed for an order that has its courier")
	}
	if err == nil {
		h.line("\nas it must be: the first has one courier and one fee, the second neither, and nobody commanded it")
	}
	return err
}

func reais(cents int64) string { return fmt.Sprintf("R$ %d.%02d", cents/100, cents%100) }
