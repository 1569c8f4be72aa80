package consumer

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

func TestDeliverHandlesAnEventOnceInTheCallersTransaction(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	errBad := errors.New("bad")
	g := New(Deps{DB: w.db, Decoder: plain{}}, Config{Group: w.group})
	on(g, &w.contract, func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
		if e.Data.N == 3 {
			return errBad
		}
		_, err := tx.Exec(ctx, `INSERT INTO effect (key, n, tenant) VALUES ($1, $2, $3)`, e.Data.Account, e.Data.N, event.Tenant(ctx))
		return err
	})
	first, second, third := w.record("a"), w.record("a"), w.record("a")
	deliver := func(end error, want bool, wantErr error, n int) {
		t.Helper()
		rec := first
		if n > 1 {
			rec = second
		}
		if n > 2 {
			rec = third
		}
		err := pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
			handled, err := g.Deliver(t.Context(), tx, rec)
			if handled != want || !errors.Is(err, wantErr) {
				t.Errorf("event %d: handled %v, %v", n, handled, err)
			}
			return errors.Join(err, end)
		})
		if want := errors.Join(wantErr, end); (err == nil) != (want == nil) {
			t.Errorf("event %d: %v", n, err)
		}
	}
	crash := errors.New("crash")
	deliver(nil, true, nil, 2) // out of order is the caller's choice
	deliver(crash, true, nil, 1)
	deliver(nil, true, nil, 1)
	deliver(nil, false, nil, 1)
	deliver(nil, false, errBad, 3)
	var effects int
	err := w.db.QueryRow(t.Context(), `SELECT count(DISTINCT n) FILTER (WHERE tenant <> '') FROM effect`).Scan(&effects)
	if err != nil || effects != 2 {
		t.Errorf("%d effects, %v", effects, err)
	}
	other := *first
	other.Topic = "elsewhere"
	err = pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
		handled, err := g.Deliver(t.Context(), tx, &other)
		if handled {
			t.Error("a record of a topic it does not read was handled")
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
