// Package delivery shows the product failing on purpose: an assignment that is
// taken back, and a service that is away for a while.
//
// Everything is real and of its own: Postgres, broker, registry, the roles of
// the product, a merchant and couriers. What must come about is checked; if it
// does not, the run ends with an error.
package delivery

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/outbox"
)

// patience bounds each wait for the product.
const patience = 40 * time.Second

// Product is Waybill as the scenarios run it.
type Product struct {
	Program string // Waybill's own, for the processes that are killed
	// Env of such a process, NAME=VALUE, beside the engines'.
	Env []string
	// Run plays roles in this process.
	Run func(ctx context.Context, on *engine.Engines, roles ...string) (*app.App, error)
}

// house is the product and who uses it. Billing is a process of its own, so
// that it can be killed.
type house struct {
	out     io.Writer
	product Product
	engines *engine.Engines
	app     *app.App
	billing *child.Process
	tenant  uuid.UUID
	key     string // of the merchant
}

// open starts the product, with so many couriers who are free.
func open(ctx context.Context, p Product, riders int, out io.Writer) (*house, error) {
	h := &house{out: out, product: p}
	err := h.start(ctx)
	if err == nil {
		err = h.enrol(ctx, riders)
	}
	if err != nil {
		return nil, errors.Join(err, h.close(ctx))
	}
	return h, nil
}

func (h *house) start(ctx context.Context) (err error) {
	if h.engines, err = engine.Start(ctx, engine.Config{Program: h.product.Program}); err != nil {
		return err
	}
	roles := slices.DeleteFunc(app.Roles(), func(r string) bool { return r == app.RoleBilling })
	h.app, err = h.product.Run(ctx, h.engines, roles...)
	if err != nil {
		return err
	}
	return h.startBilling(ctx)
}

func (h *house) startBilling(ctx context.Context) (err error) {
	h.billing, err = child.Start(ctx, "waybill run billing", h.product.Program, []string{"run", app.RoleBilling, "--log-level", "error"},
		append(h.engines.Env(), h.product.Env...))
	return err
}

// enrol makes the merchant, and couriers who ride for it.
func (h *house) enrol(ctx context.Context, riders int) error {
	directory := tenants.New(h.engines.DB, tenants.Config{})
	merchant, err := directory.Create(ctx, "Padaria Aurora")
	if err != nil {
		return err
	}
	h.tenant = merchant.ID
	if h.key, _, err = directory.IssueKey(ctx, merchant.ID, tenants.Merchant); err != nil {
		return err
	}
	m := couriers.New(h.engines.DB, outbox.New(contracts.All(), outbox.Config{}), couriers.Config{})
	duty, dctx := errgroup.WithContext(event.WithTenant(ctx, tenants.Platform.String()))
	duty.SetLimit(4)
	for n := range riders {
		duty.Go(func() error {
			id := event.NewID()
			_, err := m.Enroll(dctx, directory, couriers.Enrolment{ID: id, Name: fmt.Sprintf("Rui %d", n+1), Vehicle: "MOTORBIKE", Tenants: []uuid.UUID{merchant.ID}})
			if err == nil {
				_, err = m.SetStatus(dctx, id, couriers.Available, nil)
			}
			return err
		})
	}
	return duty.Wait()
}

// close stops and removes all of it, also after ctx has ended.
func (h *house) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	var errs []error
	if h.billing != nil {
		errs = append(errs, h.billing.Stop())
	}
	if h.app != nil {
		errs = append(errs, h.app.Stop(ctx))
	}
	if h.engines != nil {
		errs = append(errs, h.engines.Close(ctx))
	}
	return errors.Join(errs...)
}

// await waits until cond holds, or says what never came about.
func (h *house) await(ctx context.Context, what string, cond func(context.Context) (bool, error)) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	turn := time.NewTicker(20 * time.Millisecond)
	defer turn.Stop()
	for {
		ok, err := cond(ctx)
		if ok || err != nil && ctx.Err() == nil {
			return err
		}
		select {
		case <-turn.C:
		case <-h.billing.Done():
			return h.billing.Ended()
		case <-ctx.Done():
			return fmt.Errorf("not within %s: %s", patience, what)
		}
	}
}

func (h *house) line(format string, args ...any) {
	_, _ = fmt.Fprintf(h.out, format+"\n", args...) // told to whoever listens
}

// table writes rows in columns.
func (h *house) table(rows ...[]string) {
	w := tabwriter.NewWriter(h.out, 0, 0, 2, ' ', 0)
	for _, r := range rows {
		for i, cell := range r {
			if i > 0 {
				_, _ = fmt.Fprint(w, "\t")
			}
			_, _ = fmt.Fprint(w, cell)
		}
		_, _ = fmt.Fprintln(w)
	}
	_ = w.Flush()
}
