package billing_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/billing"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/pg"
)

func TestAReservationIsBilledAndItsReleaseVoidsIt(t *testing.T) {
	t.Parallel()
	o := newBed(t, billing.Config{}).order()
	o.hear(t, o.reserved(1))
	f, err := o.Fee(t.Context(), o.tenant, o.id)
	if err != nil || f.State != billing.Billed || f.Amount != billing.DefaultAmount || f.Courier != courierOf(1) || f.Currency != "BRL" || f.VoidedAt != nil {
		t.Fatalf("%+v, %v", f, err)
	}
	told := o.told(t)
	if e, ok := told[0].(*contracts.PlatformFeeBilled); !ok || e.FeeID != f.ID || e.Amount != f.Amount || e.CourierID != f.Courier || e.Attempt != 1 || e.Currency != "BRL" {
		t.Errorf("%+v", told[0])
	}
	o.hear(t, o.released(1), o.released(1))
	again, err := o.Fee(t.Context(), o.tenant, o.id)
	if err != nil || again.State != billing.Voided || again.ID != f.ID || again.VoidedAt == nil || again.Reason != "the courier was released: DECLINED" {
		t.Errorf("%+v, %v", again, err)
	}
	told = o.told(t)
	if e, ok := told[1].(*contracts.PlatformFeeVoided); !ok || len(told) != 2 || e.FeeID != f.ID || e.Amount != f.Amount || e.Reason != again.Reason {
		t.Errorf("%+v", told[1])
	}
}

func TestAnotherAmountIsBilledWhereItIsConfigured(t *testing.T) {
	t.Parallel()
	o := newBed(t, billing.Config{Amount: 990}).order()
	o.hear(t, o.reserved(1))
	if f, err := o.Fee(t.Context(), o.tenant, o.id); err != nil || f.Amount != 990 {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestAReleaseThatComesFirstBarsTheFee(t *testing.T) {
	t.Parallel()
	o := newBed(t, billing.Config{}).order()
	o.hear(t, o.released(1), o.reserved(1))
	f, err := o.Fee(t.Context(), o.tenant, o.id)
	if err != nil || f.State != billing.Barred || f.ID != uuid.Nil || f.Amount != 0 || len(o.told(t)) != 0 {
		t.Errorf("%+v, %v, told %v", f, err, o.told(t))
	}
}

func TestALaterAttemptEndsTheFeesBeforeIt(t *testing.T) {
	t.Parallel()
	b := newBed(t, billing.Config{})
	o := b.order()
	o.hear(t, o.reserved(1), o.reserved(2), o.released(1)) // word of the release comes late
	if got := o.standing(t); !slices.Equal(got, []int32{2}) || !slices.Equal(o.owed(t), got) {
		t.Errorf("attempts %v stand, told %v", got, o.owed(t))
	}
	late := b.order()
	late.hear(t, late.reserved(2), late.reserved(1))
	if got := late.standing(t); !slices.Equal(got, []int32{2}) || len(late.told(t)) != 1 {
		t.Errorf("attempts %v stand, told %v", got, late.told(t))
	}
}

func TestTheWatchTakesBackWhatStandsAndNothingElse(t *testing.T) {
	t.Parallel()
	b := newBed(t, billing.Config{})
	o := b.order()
	o.hear(t, o.reserved(1), o.overdue(1, false))
	if got := o.standing(t); !slices.Equal(got, []int32{1}) {
		t.Fatalf("forward: attempts %v stand", got)
	}
	o.hear(t, o.overdue(1, true), o.overdue(1, true), o.released(1))
	if got := o.owed(t); len(got) != 0 || len(o.told(t)) != 2 || len(o.standing(t)) != 0 {
		t.Errorf("back: attempts %v are owed, told %v", got, o.told(t))
	}
	early := b.order()
	early.hear(t, early.overdue(1, true), early.reserved(1))
	if got := early.standing(t); !slices.Equal(got, []int32{1}) {
		t.Errorf("nothing stood, yet attempt 1 was barred: %v", got)
	}
}

// The heart of it: whatever the order in which the facts of an order arrive,
// however often each does, whatever dies before its commit or fails to be voided
// at first, the books end the same, and what was told agrees with them.
func TestAnyOrderOfArrivalEndsTheSame(t *testing.T) {
	t.Parallel()
	failing := map[string]bool{} // by order and attempt
	stubborn := map[string]int{} // by order: so many voids fail first
	b := newBed(t, billing.Config{Faults: switched{func(name, order, attempt string) bool {
		if name == faults.BillingFailure {
			return failing[order+attempt]
		}
		stubborn[order]--
		return stubborn[order] >= 0
	}}})
	rapid.Check(t, func(rt *rapid.T) {
		o := b.order()
		stubborn[o.id.String()] = rapid.IntRange(0, 3).Draw(rt, "voids that fail")
		last := rapid.Int32Range(1, 4).Draw(rt, "attempts")
		var facts []fact
		var want []int32
		for n := int32(1); n <= last; n++ {
			released, untold := n < last || rapid.Bool().Draw(rt, "released"), rapid.Bool().Draw(rt, "untold")
			fails := rapid.IntRange(0, 4).Draw(rt, "fails") == 0
			failing[o.id.String()+strconv.Itoa(int(n))] = fails
			facts = append(facts, o.reserved(n))
			if released {
				facts = append(facts, o.released(n))
			}
			if untold {
				facts = append(facts, o.untold(n))
			}
			if n == last && !released && !untold && !fails {
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
			err := o.try(t.Context(), f)
			for tries := 0; err != nil && tries < 5; tries++ { // as the runtime does with one that fails
				err = o.try(t.Context(), f)
			}
			if err != nil {
				rt.Fatal(err)
			}
			if len(o.standing(t)) > 1 {
				rt.Fatal("two fees stand")
			}
		}
		if got := o.standing(t); !slices.Equal(got, want) {
			rt.Errorf("attempts %v stand, want %v", got, want)
		}
		if got := o.owed(t); !slices.Equal(got, want) {
			rt.Errorf("attempts %v are owed by what was told, want %v", got, want)
		}
		f, err := o.Fee(t.Context(), o.tenant, o.id)
		if err != nil || (f.State == billing.Billed) != (len(want) > 0) || f.Attempt != last {
			rt.Errorf("the order's fee is %+v, %v", f, err)
		}
	})
}

// Facts of one order come from topics that are read side by side.
func TestFactsAtOnceEndAsOneAfterAnother(t *testing.T) {
	t.Parallel()
	b := newBed(t, billing.Config{})
	for range 12 {
		o := b.order()
		var all sync.WaitGroup
		for _, f := range []fact{
			o.reserved(1), o.untold(1), o.released(1), o.reserved(2), o.untold(2), o.released(2), o.reserved(3), o.reserved(3),
		} {
			all.Go(func() {
				if err := o.try(t.Context(), f); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if got := o.standing(t); !slices.Equal(got, []int32{3}) || !slices.Equal(o.owed(t), got) {
			t.Errorf("attempts %v stand, told %v", got, o.owed(t))
		}
	}
}

func TestTheDatabaseRefusesASecondFeeThatStands(t *testing.T) {
	t.Parallel()
	o := newBed(t, billing.Config{}).order()
	o.hear(t, o.reserved(1))
	insert := func(attempt int, state, fee string) error {
		return pg.InTenant(t.Context(), o.pool, o.tenant.String(), func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), fmt.Sprintf(`INSERT INTO billing.fees (tenant, order_id, attempt, fee_id, courier_id, amount, currency, state, made_at)
				VALUES ($1, $2, $3, %s, $1, 1, 'BRL', $4, now())`, fee), o.tenant, o.id, attempt, state)
			return err
		})
	}
	for name, c := range map[string]struct {
		err        error
		constraint string
	}{
		"a second one": {insert(2, "BILLED", "gen_random_uuid()"), "one_standing_fee"},
		"one attempt":  {insert(1, "BARRED", "NULL"), "fees_pkey"},
		"no id":        {insert(3, "BILLED", "NULL"), "fees_check"},
	} {
		var refused *pgconn.PgError
		if !errors.As(c.err, &refused) || refused.ConstraintName != c.constraint {
			t.Errorf("%s: %v", name, c.err)
		}
	}
	if err := insert(2, "BARRED", "NULL"); err != nil {
		t.Error(err)
	}
}

func TestAnotherTenantSeesNoFee(t *testing.T) {
	t.Parallel()
	b := newBed(t, billing.Config{})
	o, theirs := b.order(), event.NewID()
	o.hear(t, o.reserved(1))
	if f, err := b.Fee(t.Context(), theirs, o.id); !errors.Is(err, billing.ErrNotFound) {
		t.Errorf("%+v, %v", f, err)
	}
	for f, err := range b.Fees(t.Context(), theirs, time.Now().Add(-time.Hour), time.Now().Add(time.Hour)) {
		t.Errorf("%+v, %v", f, err)
	}
	for _, table := range []string{"billing.orders", "billing.fees"} {
		seen := map[string]int{}
		for who, tenant := range map[string]uuid.UUID{"ours": o.tenant, "theirs": theirs} {
			err := pg.InTenant(t.Context(), b.pool, tenant.String(), func(tx pgx.Tx) error {
				var n int
				err := tx.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&n)
				seen[who] = n
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		var nobodys int
		if err := b.pool.QueryRow(t.Context(), "SELECT count(*) FROM "+table).Scan(&nobodys); err != nil {
			t.Fatal(err)
		}
		if seen["ours"] != 1 || seen["theirs"] != 0 || nobodys != 0 {
			t.Errorf("%s shows %v, and %d to nobody", table, seen, nobodys)
		}
	}
	// The same order id under another tenant is another order.
	stranger := order{b, theirs, o.id}
	stranger.hear(t, stranger.released(1))
	if got := o.standing(t); !slices.Equal(got, []int32{1}) {
		t.Errorf("another tenant's release left %v standing", got)
	}
}

func TestADaysFeesAreReadByThePageAndEndWithTheDay(t *testing.T) {
	t.Parallel()
	b, tenant := newBed(t, billing.Config{}), event.NewID()
	day := time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)
	// 1300 fees, several of one instant; every hundredth is barred and is no fee.
	err := pg.InTenant(t.Context(), b.pool, tenant.String(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO billing.fees (tenant, order_id, attempt, fee_id, courier_id, amount, currency, state, made_at)
			SELECT $1, gen_random_uuid(), 1, CASE WHEN n % 100 > 0 THEN gen_random_uuid() END, $1, n, 'BRL',
				CASE WHEN n % 100 > 0 THEN 'BILLED' ELSE 'BARRED' END, $2::timestamptz + n / 7 * interval '1 minute'
			FROM generate_series(0, 1299) n`, tenant, day)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	read := func(from, to time.Time) (amounts []int64) {
		for f, err := range b.Fees(t.Context(), tenant, from, to) {
			if err != nil {
				t.Fatal(err)
			}
			amounts = append(amounts, f.Amount)
		}
		return amounts
	}
	want := map[bool]int{}
	for n := range 1300 {
		if n%100 > 0 {
			want[true]++
			if m := n / 7; m >= 30 && m < 90 {
				want[false]++
			}
		}
	}
	all := read(day, day.Add(24*time.Hour))
	if slices.Sort(all); len(slices.Compact(all)) != want[true] {
		t.Errorf("%d of %d fees of the day", len(all), want[true])
	}
	if some := read(day.Add(30*time.Minute), day.Add(90*time.Minute)); len(some) != want[false] {
		t.Errorf("%d of %d fees of the hour", len(some), want[false])
	}
	for _, err := range b.Fees(t.Context(), tenant, day, day.Add(24*time.Hour)) {
		if err != nil {
			t.Error(err)
		}
		break // a client that left
	}
	for _, err := range b.Fees(t.Context(), tenant, day, day.AddDate(1, 0, 0)) {
		if err == nil {
			t.Error("a year was read at once")
		}
	}
}
