package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/waybillhq/waybill/bench/stat"
)

// Load of an outage.
type Load struct {
	Rate int           // orders a second
	Away time.Duration // how long billing is; from 10 s on its successor need not wait for the broker to miss it
}

const warmup = 2 * time.Second

// before is how long the load is looked at while all is well.
func (l Load) before() time.Duration { return min(l.Away, 6*time.Second) }

func (l Load) in(d time.Duration) int { return int(d.Seconds() * float64(l.Rate)) }

// Outage takes billing away under load, and gives it back.
func Outage(ctx context.Context, p Product, l Load, out io.Writer) (err error) {
	h, err := open(ctx, p, l.in(warmup)+l.in(l.before())+l.in(l.Away), out)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.close(ctx)) }()
	warm, err := h.trade(ctx, l.Rate, warmup)
	if err != nil {
		return err
	}
	h.line("\n1  %d orders a second for %s, all modules are there", l.Rate, l.before())
	calm, err := h.trade(ctx, l.Rate, l.before())
	if err != nil {
		return err
	}
	if err := h.settled(ctx, len(warm.orders)+len(calm.orders)); err != nil {
		return err
	}
	h.line("2  kill -9 of the process of billing; %d orders a second for %s", l.Rate, l.Away)
	if err := h.billing.Kill(); err != nil {
		return err
	}
	dark, err := h.trade(ctx, l.Rate, l.Away)
	if err != nil {
		return err
	}
	waiting, err := h.count(ctx, `SELECT count(*) FROM orders.orders WHERE state <> 'ASSIGNED'`)
	if err != nil {
		return err
	}
	h.line("3  billing is started again; %d orders wait for it", waiting)
	began := time.Now()
	if err := h.startBilling(ctx); err != nil {
		return err
	}
	all := len(warm.orders) + len(calm.orders) + len(dark.orders)
	if err := h.settled(ctx, all); err != nil {
		return err
	}
	return h.verdict(ctx, l, calm, dark, all, waiting, time.Since(began))
}

// settled waits until all orders are assigned, their sagas completed and their
// couriers' reservations confirmed, which each module does at its own time.
func (h *house) settled(ctx context.Context, all int) error {
	return h.await(ctx, fmt.Sprintf("%d orders assigned", all), func(ctx context.Context) (bool, error) {
		n, err := h.count(ctx, `SELECT count(*) FROM orders.orders WHERE state = 'ASSIGNED'`)
		if err != nil || n < all {
			return false, err
		}
		if n, err = h.completed(ctx); err != nil || n < all {
			return false, err
		}
		n, err = h.count(ctx, `SELECT count(*) FROM couriers.reservations WHERE state = 'CONFIRMED'`)
		return n >= all, err
	})
}

func (h *house) verdict(ctx context.Context, l Load, calm, dark sale, all, waiting int, took time.Duration) error {
	calmWait, err := h.assigned(ctx, calm.orders)
	if err != nil {
		return err
	}
	darkWait, err := h.assigned(ctx, dark.orders)
	if err != nil {
		return err
	}
	fees, err := h.count(ctx, `SELECT count(*) FROM billing.fees WHERE state = 'BILLED'`)
	if err != nil {
		return err
	}
	held, err := h.count(ctx, `SELECT count(*) FROM couriers.reservations WHERE state = 'CONFIRMED'`)
	if err != nil {
		return err
	}
	released, err := h.count(ctx, `SELECT count(*) FROM couriers.reservations WHERE state = 'RELEASED'`)
	if err != nil {
		return err
	}
	h.line("")
	h.table(
		[]string{"", "orders", "mean", "p50", "p99", "max"},
		times("POST /v1/orders, before", calm.took),
		times("POST /v1/orders, without billing", dark.took),
		times("created to assigned, before", calmWait),
		times("created to assigned, without billing", darkWait))
	h.line("\nplaced %d, refused %d; waited for billing %d; assigned %s after its start", all, calm.refused+dark.refused, waiting, took.Round(10*time.Millisecond))
	h.line("books: %d fees stand, %d reservations are confirmed, %d were released", fees, held, released)
	switch {
	case waiting < len(dark.orders)*9/10:
		return fmt.Errorf("%d of %d orders waited: billing was not away", waiting, len(dark.orders))
	case fees != all || held != all:
		return fmt.Errorf("%d orders, but %d fees and %d reservations", all, fees, held)
	case slices.Max(dark.took) >= l.Away:
		return errors.New("placing an order waited for billing")
	}
	h.line("\nas it must be: placing orders did not notice, nothing was lost, what waited was finished once billing was back")
	return nil
}

func times(what string, took []time.Duration) []string {
	row := []string{what, fmt.Sprint(len(took))}
	if len(took) == 0 {
		return row
	}
	for _, ms := range []float64{stat.Mean(took), stat.Quantile(took, 0.5), stat.Quantile(took, 0.99), stat.Milliseconds(slices.Max(took))} {
		row = append(row, fmt.Sprintf("%.1f ms", ms))
	}
	return row
}
