package faults_test

import (
	"context"
	"errors"
	"flag"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// The property takes statements for each check: fewer of them, unless the command
// line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("20"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

func database(t *testing.T) string {
	t.Helper()
	dsn := pgtest.New(t)
	if err := pg.Migrate(t.Context(), open(t, dsn), faults.Migration()); err != nil {
		t.Fatal(err)
	}
	return dsn
}

func open(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	pool, err := pg.Open(t.Context(), dsn, pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// process is flags as another process has them: a pool and a memory of its own.
func process(t *testing.T, dsn string) *faults.Flags {
	t.Helper()
	return faults.New(open(t, dsn), faults.Config{Every: 10 * time.Millisecond})
}

// running is a process whose flags are kept fresh until the test ends.
func running(t *testing.T, dsn string) *faults.Flags {
	t.Helper()
	f := process(t, dsn)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return f
}

func set(t *testing.T, f *faults.Flags, name string, value int64, last time.Duration) {
	t.Helper()
	if _, err := f.Set(t.Context(), name, value, last, "ana"); err != nil {
		t.Fatal(err)
	}
}

func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := time.After(time.Minute)
	for !cond() {
		select {
		case <-limit:
			t.Fatalf("never: %s", what)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func TestAnotherProcessSeesAFaultComeAndGo(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	here, there := process(t, dsn), running(t, dsn)
	set(t, here, faults.BillingFailure, 100, 0)
	set(t, here, faults.SlowConsumer, 250, 0)
	if !here.Fails(faults.BillingFailure, "a") {
		t.Error("the process that set it does not see it at once")
	}
	until(t, "seen there", func() bool { return there.Fails(faults.BillingFailure, "a") })
	until(t, "the other too", func() bool { return there.Delay(faults.SlowConsumer) == 250*time.Millisecond })
	if there.Fails(faults.NotificationFailure, "a") || there.Value(faults.BrokerDown) != 0 {
		t.Error("a fault is on that nobody set")
	}
	if n, err := here.Clear(t.Context(), faults.BillingFailure); n != 1 || err != nil {
		t.Errorf("cleared %d, %v", n, err)
	}
	until(t, "gone there", func() bool { return !there.Fails(faults.BillingFailure, "a") })
	if there.Delay(faults.SlowConsumer) == 0 {
		t.Error("another fault went with it")
	}
}

func TestAFaultEndsByItself(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	here := process(t, dsn) // it looks once, and knows the end from then on
	set(t, here, faults.BrokerDown, 1, 300*time.Millisecond)
	until(t, "over", func() bool { return here.Value(faults.BrokerDown) == 0 })
	all, err := here.List(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	until(t, "over for the database", func() bool {
		all, err = here.List(t.Context())
		return err == nil && named(all, faults.BrokerDown).Value == 0
	})
	if n, err := here.Clear(t.Context()); n != 0 || err != nil {
		t.Errorf("%d faults were still set, %v", n, err)
	}
}

func named(all []faults.Setting, name string) faults.Setting {
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	return faults.Setting{}
}

func TestTheListTellsOfAllFaults(t *testing.T) {
	t.Parallel()
	f := process(t, database(t))
	set(t, f, faults.CompensationFailure, 30, time.Hour)
	set(t, f, faults.PoisonEvent, 5, 0)
	all, err := f.List(t.Context())
	if err != nil || len(all) != len(faults.Known()) {
		t.Fatalf("%d faults, %v", len(all), err)
	}
	c := named(all, faults.CompensationFailure)
	if c.Value != 30 || c.Until == nil || c.Until.Before(time.Now()) || c.SetBy != "ana" || c.Left != nil {
		t.Errorf("%+v", c)
	}
	if p := named(all, faults.PoisonEvent); p.Value != 5 || p.Until != nil || p.Left == nil || *p.Left != 5 {
		t.Errorf("%+v", p)
	}
	if off := named(all, faults.Webhook500); off.Value != 0 || off.SetAt != nil || off.Does == "" {
		t.Errorf("%+v", off)
	}
	set(t, f, faults.CompensationFailure, 0, 0)
	if n, err := f.Clear(t.Context()); n != 1 || err != nil {
		t.Errorf("cleared %d, %v; 0 should have cleared the other", n, err)
	}
}

func TestWhatCannotBeSetIsRefusedWithWhatCan(t *testing.T) {
	t.Parallel()
	f := process(t, database(t))
	var unknown *faults.UnknownError
	_, err := f.Set(t.Context(), "biling-failure", 10, 0, "ana")
	if !errors.As(err, &unknown) || !strings.Contains(err.Error(), "billing-failure, broker-down") {
		t.Errorf("%v", err)
	}
	if _, err := f.Clear(t.Context(), "all"); !errors.As(err, &unknown) {
		t.Errorf("%v", err)
	}
	for _, c := range []struct {
		name  string
		value int64
		last  time.Duration
	}{
		{faults.BillingFailure, 101, 0},
		{faults.BillingFailure, -1, 0},
		{faults.SlowConsumer, 60_000, 0},
		{faults.PoisonEvent, 1 << 40, 0},
		{faults.BrokerDown, 2, 0},
		{faults.BrokerDown, 1, -time.Second},
		{faults.BrokerDown, 1, 1 << 62},
	} {
		var invalid *faults.InvalidError
		if _, err := f.Set(t.Context(), c.name, c.value, c.last, "ana"); !errors.As(err, &invalid) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if s, err := f.Set(t.Context(), faults.BrokerDown, 1, 0, "\xff\x00"+strings.Repeat("é", 1000)); err != nil || s.SetBy == "" {
		t.Errorf("who set it: %q, %v", s.SetBy, err)
	}
}

// A percentage strikes about so many, the same ones each time and in each
// process, and others once it is set anew.
func TestAPercentageIsDecidedOnce(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	here, there := process(t, dsn), process(t, dsn)
	rapid.Check(t, func(rt *rapid.T) {
		percent := rapid.Int64Range(0, 100).Draw(rt, "percent")
		set(t, here, faults.BillingFailure, percent, 0)
		if err := there.Refresh(t.Context()); err != nil {
			rt.Fatal(err)
		}
		const orders = 2000
		struck := int64(0)
		for n := range orders {
			id := []string{strconv.Itoa(n), "1"}
			hit := here.Fails(faults.BillingFailure, id...)
			if hit {
				struck++
			}
			if there.Fails(faults.BillingFailure, id...) != hit || here.Fails(faults.BillingFailure, id...) != hit {
				rt.Fatalf("order %d is decided anew", n)
			}
		}
		// Five standard deviations of 2000 throws are below 6 %.
		if low, high := (percent-6)*orders/100, (percent+6)*orders/100; struck < low || struck > high {
			rt.Errorf("%d of %d at %d %%", struck, orders, percent)
		}
		if percent == 0 && struck != 0 || percent == 100 && struck != orders {
			rt.Errorf("%d of %d at %d %%", struck, orders, percent)
		}
	})
	set(t, here, faults.BillingFailure, 50, 0)
	before := struckOf(here)
	set(t, here, faults.BillingFailure, 50, 0)
	if before == struckOf(here) {
		t.Error("set anew, it strikes the same")
	}
}

func struckOf(f *faults.Flags) (out string) {
	for n := range 200 {
		out += strconv.FormatBool(f.Fails(faults.BillingFailure, strconv.Itoa(n)))
	}
	return out
}

func TestPoisonTakesSoManyEventsAndKeepsThem(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	here, there := process(t, dsn), process(t, dsn)
	const most = 7
	set(t, here, faults.PoisonEvent, most, 0)
	if err := there.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	events := make([]uuid.UUID, 60)
	for i := range events {
		events[i] = uuid.New()
	}
	var taken atomic.Int64
	var all sync.WaitGroup
	for _, f := range []*faults.Flags{here, there} { // each event comes to one of them
		all.Go(func() {
			for i, id := range events {
				if (i%2 == 0) == (f == here) && poisoned(t, f, id) {
					taken.Add(1)
				}
			}
		})
	}
	all.Wait()
	again := int64(0)
	for _, id := range events {
		if poisoned(t, there, id) {
			again++
		}
	}
	if taken.Load() != most || again != most {
		t.Errorf("%d taken, %d when they came again", taken.Load(), again)
	}
	settings, err := here.List(t.Context())
	if p := named(settings, faults.PoisonEvent); err != nil || p.Left == nil || *p.Left != 0 {
		t.Errorf("%+v, %v", p, err)
	}
	if _, err := here.Clear(t.Context(), faults.PoisonEvent); err != nil {
		t.Fatal(err)
	}
	for _, id := range events { // there still believes that it is on, and asks
		if poisoned(t, there, id) {
			t.Error("poisoned though the fault is cleared")
		}
	}
}

func poisoned(t *testing.T, f *faults.Flags, id uuid.UUID) bool {
	t.Helper()
	yes, err := f.Poisoned(t.Context(), faults.PoisonEvent, id)
	if err != nil {
		t.Error(err)
	}
	return yes
}

func TestWithoutADatabaseTheLastFaultsHold(t *testing.T) {
	t.Parallel()
	dsn := database(t)
	pool := open(t, dsn)
	f := faults.New(pool, faults.Config{})
	if f.Fails(faults.BillingFailure, "a") {
		t.Error("on before anybody looked")
	}
	set(t, f, faults.BillingFailure, 100, 0)
	pool.Close()
	if err := f.Refresh(t.Context()); err == nil {
		t.Fatal("a closed pool answers")
	}
	if !f.Fails(faults.BillingFailure, "a") {
		t.Error("forgotten")
	}
}
