package dispatch_test

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/dispatch"
	"github.com/waybillhq/waybill/pg"
)

func TestACourierIsToldAndTheNoticeIsWithdrawn(t *testing.T) {
	t.Parallel()
	o := newBed(t, dispatch.Config{}).order()
	o.hear(t, o.billed(1))
	n, err := o.Notice(t.Context(), o.tenant, o.id)
	if err != nil || n.State != dispatch.Sent || n.Courier != courierOf(1) || n.Fee != feeOf(1) || n.Attempt != 1 || n.EndedAt != nil {
		t.Fatalf("%+v, %v", n, err)
	}
	told := o.told(t)
	if e, ok := told[0].(*contracts.CourierNotified); !ok || e.CourierID != n.Courier || e.FeeID != n.Fee || e.Attempt != 1 {
		t.Errorf("%+v", told[0])
	}
	o.hear(t, o.voided(1), o.released(1))
	if n, err = o.Notice(t.Context(), o.tenant, o.id); err != nil || n.State != dispatch.Withdrawn || n.EndedAt == nil || n.Reason != "the fee was voided: test" {
		t.Errorf("%+v, %v", n, err)
	}
	if got := o.told(t); len(got) != 1 {
		t.Errorf("told %v", got)
	}
}

func TestWhatEndsAnAttemptFirstBarsItsNotice(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{})
	for name, end := range map[string]func(order) fact{
		"released": func(o order) fact { return o.released(1) },
		"voided":   func(o order) fact { return o.voided(1) },
		"later":    func(o order) fact { return o.released(2) },
	} {
		o := b.order()
		o.hear(t, end(o), o.billed(1))
		if got := o.standing(t); len(got) != 0 || len(o.told(t)) != 0 {
			t.Errorf("%s: attempts %v stand, told %v", name, got, o.told(t))
		}
	}
}

// The heart of it: see the same of package billing.
func TestAnyOrderOfArrivalEndsTheSame(t *testing.T) {
	t.Parallel()
	fails := failing{}
	b := newBed(t, dispatch.Config{Faults: fails})
	rapid.Check(t, func(rt *rapid.T) {
		o := b.order()
		last := rapid.Int32Range(1, 4).Draw(rt, "attempts")
		var facts []fact
		var want []int32
		for n := int32(1); n <= last; n++ {
			voided, released := rapid.Bool().Draw(rt, "voided"), rapid.Bool().Draw(rt, "released")
			fail := rapid.IntRange(0, 4).Draw(rt, "fails") == 0
			fails[o.id.String()+strconv.Itoa(int(n))] = fail
			facts = append(facts, o.billed(n))
			if voided || !released && n < last {
				facts = append(facts, o.voided(n))
			}
			if released {
				facts = append(facts, o.released(n))
			}
			if n == last && !voided && !released && !fail {
				want = []int32{n}
			}
		}
		for _, f := range slices.Clone(facts) {
			if rapid.Bool().Draw(rt, "twice") {
				facts = append(facts, f)
			}
		}
		for _, f := range rapid.Permutation(facts).Draw(rt, "arrival") {
			if rapid.IntRange(0, 3).Draw(rt, "dies") == 0 {
				err := o.try(t.Context(), func(ctx context.Context, tx pgx.Tx) error { return errors.Join(f(ctx, tx), errCrash) })
				if !errors.Is(err, errCrash) {
					rt.Fatal(err)
				}
			}
			if err := o.try(t.Context(), f); err != nil {
				rt.Fatal(err)
			}
		}
		if got := o.standing(t); !slices.Equal(got, want) {
			rt.Errorf("attempts %v stand, want %v", got, want)
		}
		told := map[int32]bool{}
		for _, data := range o.told(t) {
			attempt, failed := int32(0), false
			switch e := data.(type) {
			case *contracts.CourierNotified:
				attempt = e.Attempt
			case *contracts.CourierNotificationFailed:
				attempt, failed = e.Attempt, true
			}
			if attempt == 0 || told[attempt] || failed != fails[o.id.String()+strconv.Itoa(int(attempt))] {
				rt.Errorf("attempt %d: told %+v", attempt, data)
			}
			told[attempt] = true
		}
		if len(want) > 0 && !told[want[0]] {
			rt.Error("a notice stands of which nobody was told")
		}
	})
}

func TestFactsAtOnceEndAsOneAfterAnother(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{})
	for range 12 {
		o := b.order()
		var all sync.WaitGroup
		for _, f := range []fact{o.billed(1), o.voided(1), o.released(1), o.billed(2), o.released(2), o.billed(3), o.billed(3)} {
			all.Go(func() {
				if err := o.try(t.Context(), f); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := o.standing(t); !slices.Equal(got, []int32{3}) {
			t.Errorf("attempts %v stand, told %v", got, o.told(t))
		}
	}
}

func TestTheDatabaseRefusesASecondNoticeThatStands(t *testing.T) {
	t.Parallel()
	o := newBed(t, dispatch.Config{}).order()
	o.hear(t, o.billed(1))
	err := pg.InTenant(t.Context(), o.pool, o.tenant.String(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO dispatch.notices (tenant, order_id, attempt, courier_id, state, made_at)
			VALUES ($1, $2, 2, $1, 'SENT', now())`, o.tenant, o.id)
		return err
	})
	var refused *pgconn.PgError
	if !errors.As(err, &refused) || refused.ConstraintName != "one_standing_notice" {
		t.Error(err)
	}
}

func TestNoticesAreSeenByTheirTenantAndTheirCourierOnly(t *testing.T) {
	t.Parallel()
	b := newBed(t, dispatch.Config{})
	first, second, gone := b.order(), b.order(), b.order() // of three tenants, one courier
	first.hear(t, first.billed(1))
	second.hear(t, second.billed(1))
	gone.hear(t, gone.billed(1), gone.released(1))
	if n, err := b.Notice(t.Context(), second.tenant, first.id); !errors.Is(err, dispatch.ErrNotFound) {
		t.Errorf("%+v, %v", n, err)
	}
	told, err := b.Told(t.Context(), courierOf(1))
	if err != nil || len(told) != 2 || told[0].Order != second.id || told[1].Order != first.id || told[1].Tenant != first.tenant {
		t.Errorf("%+v, %v", told, err)
	}
	if told, err := b.Told(t.Context(), courierOf(2)); err != nil || len(told) != 0 {
		t.Errorf("another courier sees %+v, %v", told, err)
	}
	for _, table := range []string{"dispatch.orders", "dispatch.notices"} {
		for who, want := range map[uuid.UUID]int{first.tenant: 1, event.NewID(): 0} {
			var seen, nobodys int
			err := pg.InTenant(t.Context(), b.pool, who.String(), func(tx pgx.Tx) error {
				return tx.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&seen)
			})
			if err != nil {
				t.Fatal(err)
			}
			if err := b.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&nobodys); err != nil {
				t.Fatal(err)
			}
			if seen != want || nobodys != 0 {
				t.Errorf("%s shows %d, want %d, and %d to nobody", table, seen, want, nobodys)
			}
		}
	}
	// A courier reads, and changes nothing.
	err = pgx.BeginFunc(t.Context(), b.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(t.Context(), `SELECT set_config('waybill.courier', $1, true)`, courierOf(1).String()); err != nil {
			return err
		}
		tag, err := tx.Exec(t.Context(), `UPDATE dispatch.notices SET state = 'FAILED'`)
		if tag.RowsAffected() != 0 {
			t.Errorf("%d notices changed", tag.RowsAffected())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
