package couriers_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/pg"
)

func requireConstraint(t *testing.T, err error, name string) {
	t.Helper()
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.Code != "23505" || refused.ConstraintName != name {
		t.Errorf("%s: %v", name, err)
	}
}

var ownTables = []string{"couriers", "courier_tenant", "positions", "requests", "reservations"}

// seen counts what a transaction with one setting sees of each table.
func (b *bed) seen(t *testing.T, settings ...string) map[string]int {
	t.Helper()
	got := map[string]int{}
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		for i := 0; i < len(settings); i += 2 {
			if _, err := tx.Exec(t.Context(), `SELECT set_config($1, $2, true)`, settings[i], settings[i+1]); err != nil {
				return err
			}
		}
		for _, table := range ownTables {
			var n int
			if err := tx.QueryRow(t.Context(), "SELECT count(*) FROM couriers."+table).Scan(&n); err != nil {
				return err
			}
			got[table] = n
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func requireSeen(t *testing.T, who string, got map[string]int, want ...int) {
	t.Helper()
	for i, table := range ownTables {
		if got[table] != want[i] {
			t.Errorf("%s sees %d rows of %s, want %d", who, got[table], table, want[i])
		}
	}
}

func TestRowLevelSecurityHoldsBeneathEveryStatement(t *testing.T) {
	t.Parallel()
	b, ours, theirs := newBed(t), event.NewID(), event.NewID()
	requirePlainRole(t, b)
	shared, alien := b.enrol(t, ours, theirs), b.enrol(t, theirs)
	b.at(t, shared, 1, 1, 1)
	b.at(t, alien, 1, 1, 1)
	b.create(t, ours) // holds shared
	b.create(t, ours) // waits
	b.create(t, theirs)
	b.create(t, theirs)
	requireSeen(t, "nobody", b.seen(t), 0, 0, 0, 0, 0)
	requireSeen(t, "our merchant", b.seen(t, "waybill.tenant", ours.String()), 1, 1, 0, 2, 1)
	requireSeen(t, "the shared courier", b.seen(t, "waybill.courier", shared.String()), 1, 2, 1, 0, 1)
	requireSeen(t, "choosing for us", b.seen(t, "waybill.tenant", ours.String(), "waybill.couriers_choosing", "on"), 1, 1, 1, 2, 1)
	requireSeen(t, "serving their courier", b.seen(t, "waybill.courier", alien.String(), "waybill.couriers_serving", "on"), 1, 1, 1, 1, 1)
	requireSeen(t, "housekeeping", b.seen(t, "waybill.couriers_housekeeping", "on"), 0, 3, 0, 2, 2)
	requireSeen(t, "nobody, afterwards", b.seen(t), 0, 0, 0, 0, 0)
}

// requirePlainRole: row-level security does not bind a superuser.
func requirePlainRole(t *testing.T, b *bed) {
	t.Helper()
	var super, bypass bool
	err := b.pool.QueryRow(t.Context(), `SELECT rolsuper, rolbypassrls FROM pg_roles WHERE rolname = current_user`).Scan(&super, &bypass)
	if err != nil || super || bypass {
		t.Fatalf("superuser %v, bypasses row-level security %v, %v", super, bypass, err)
	}
}

func TestTheWideSettingsWriteNothing(t *testing.T) {
	t.Parallel()
	b, ours := newBed(t), event.NewID()
	rui := b.enrol(t, ours)
	b.enrol(t, ours)
	for range 3 {
		b.create(t, ours)
	}
	for _, settings := range [][]string{
		{"waybill.couriers_housekeeping", "on"},
		{"waybill.courier", rui.String(), "waybill.couriers_serving", "on"},
		{"waybill.tenant", event.NewID().String(), "waybill.couriers_choosing", "on"},
	} {
		for _, sql := range []string{
			`UPDATE couriers.requests SET state = 'CLOSED'`, `DELETE FROM couriers.requests`,
			`UPDATE couriers.reservations SET state = 'DONE'`, `DELETE FROM couriers.reservations`,
			`DELETE FROM couriers.couriers`, `UPDATE couriers.couriers SET phone = 'x' WHERE id <> '` + rui.String() + `'`,
		} {
			err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
				for i := 0; i < len(settings); i += 2 {
					if _, err := tx.Exec(t.Context(), `SELECT set_config($1, $2, true)`, settings[i], settings[i+1]); err != nil {
						return err
					}
				}
				ct, err := tx.Exec(t.Context(), sql)
				if ct.RowsAffected() != 0 {
					t.Errorf("%v: %s changed %d rows", settings, sql, ct.RowsAffected())
				}
				return err
			})
			var denied *pgconn.PgError
			if err != nil && (!errors.As(err, &denied) || denied.Code != "42501") {
				t.Error(err)
			}
		}
	}
}

// Choosing locks a courier of the merchant's; it cannot write one.
func TestChoosingLocksAndDoesNotWrite(t *testing.T) {
	t.Parallel()
	b, ours := newBed(t), event.NewID()
	b.enrol(t, ours)
	err := pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT set_config('waybill.tenant', $1, true), set_config('waybill.couriers_choosing', 'on', true)`, ours.String()); err != nil {
			return err
		}
		ct, err := tx.Exec(t.Context(), `SELECT FROM couriers.couriers FOR NO KEY UPDATE`)
		if err != nil || ct.RowsAffected() != 1 {
			t.Errorf("locked %d, %v", ct.RowsAffected(), err)
		}
		_, err = tx.Exec(t.Context(), `UPDATE couriers.couriers SET state = 'RESERVED'`)
		return err
	})
	var denied *pgconn.PgError
	if !errors.As(err, &denied) || denied.Code != "42501" {
		t.Errorf("wrote: %v", err)
	}
}

func TestAMerchantSeesTheCouriersWhoRideForThem(t *testing.T) {
	t.Parallel()
	b, ours, theirs := newBed(t), event.NewID(), event.NewID()
	shared := b.enrol(t, ours, theirs)
	alone := b.enrol(t, theirs)
	for tenant, want := range map[uuid.UUID]int{ours: 1, theirs: 2, event.NewID(): 0} {
		list, err := b.Linked(t.Context(), tenant)
		if err != nil || len(list) != want {
			t.Errorf("%d couriers, want %d: %v", len(list), want, err)
		}
		if tenant == ours && list[0] != (couriers.Courier{ID: shared, Name: "Rui", Vehicle: "MOTORBIKE", State: couriers.Available, Version: 1}) {
			t.Errorf("%+v", list[0])
		}
		// By name one asks for whom one likes, and is told of one's own.
		if among, err := b.Among(t.Context(), tenant, []uuid.UUID{shared, alone, event.NewID()}); err != nil || len(among) != want {
			t.Errorf("%d among them, want %d: %v", len(among), want, err)
		}
	}
	b.create(t, ours)
	b.create(t, ours) // theirs alone is not for us
	if s := b.sums(t, ours); s.active != 1 || s.waiting != 1 {
		t.Errorf("%+v", s)
	}
}

func TestAnOrderOfAnotherIsNotTheirsToGiveBack(t *testing.T) {
	t.Parallel()
	b, ours, theirs := newBed(t), event.NewID(), event.NewID()
	rui, ana := b.enrol(t, ours), b.offline(t, ours)
	order := b.create(t, ours)
	for name, err := range map[string]error{
		"another courier":  b.Decline(ctxOf(t, theirs), ana, order, ""),
		"another merchant": b.Reassign(ctxOf(t, theirs), theirs, order),
		"no order":         b.Reassign(ctxOf(t, ours), ours, event.NewID()),
	} {
		if !errors.Is(err, couriers.ErrNoJob) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.requireState(t, rui, couriers.Reserved)
	err := pg.InTenant(t.Context(), b.pool, theirs.String(), func(tx pgx.Tx) error {
		var n int
		err := tx.QueryRow(t.Context(), `SELECT count(*) FROM couriers.requests`).Scan(&n)
		if n != 0 {
			t.Errorf("%d orders were made by asking", n)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func ctxOf(t *testing.T, tenant uuid.UUID) context.Context {
	return event.WithTenant(t.Context(), tenant.String())
}
