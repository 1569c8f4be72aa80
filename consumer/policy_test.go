package consumer

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
)

var (
	errBusy  = errors.New("busy")
	errFatal = errors.New("fatal")
	errNone  = errors.New("no account")
)

// failing fails as errs says of the account's name, until it is mended.
type failing struct {
	errs   map[string]error
	tries  atomic.Int64
	mended atomic.Bool
}

func (f *failing) keep(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
	if err := keep(ctx, tx, e); err != nil {
		return err
	}
	if err := f.errs[e.Data.Account]; err != nil && !f.mended.Load() {
		f.tries.Add(1)
		return fmt.Errorf("handle: %w", err)
	}
	return nil
}

var quick = Between(time.Millisecond, 5*time.Millisecond)

func policy(rules ...Rule) func(*setup) { return func(s *setup) { s.cfg.Policy = rules } }

func TestARuleDecidesHowOftenAndHowItEnds(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		rule  Rule
		err   error
		tries int64
		class string
	}{
		"no tries":            {When("busy", Is(errBusy)), errBusy, 1, "busy"},
		"tries in place":      {When("busy", Is(errBusy)).Try(4, quick).ThenDead(), errBusy, 4, "busy"},
		"parked tries":        {When("busy", Is(errBusy)).Park(3, quick), errBusy, 4, "busy"},
		"both":                {When("busy", Is(errBusy)).Try(2, quick).Park(3, quick), errBusy, 5, "busy"},
		"for so long":         {When("busy", Is(errBusy)).Park(1<<20, quick).For(time.Nanosecond), errBusy, 1, "busy"},
		"by type":             {When("path", As[*fs.PathError]()), &fs.PathError{Op: "open", Path: "x", Err: errBusy}, 1, "path"},
		"permanent":           {When("busy", Is(errBusy)).Try(9, quick).Park(9, quick), Permanent(errBusy), 1, "busy"},
		"permanent, no rule":  {When("path", As[*fs.PathError]()), Permanent(errBusy), 1, "permanent"},
		"of no rule: default": {When("path", As[*fs.PathError]()), errBusy, 5, "other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			f := &failing{errs: map[string]error{"a": c.err}}
			w.start(f.keep, soon, policy(c.rule))
			w.move("a", "b")
			k := w.untilDead(1)[0]
			if f.tries.Load() != c.tries || k.Failures != int(c.tries) || k.Class != c.class {
				t.Errorf("%d tries, want %d; %+v", f.tries.Load(), c.tries, k)
			}
			w.until("the other key flows", func() bool { return w.effects("b") == 1 })
		})
	}
}

// Dropped at once, or after parked tries: the key goes on without the event,
// also when it comes again.
func TestAnEventItsRuleDropsIsPassedForGood(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]Rule{
		"at once": When("none", Is(errNone)).ThenDrop(),
		"parked":  When("none", Is(errNone)).Try(2, quick).Park(2, quick).ThenDrop(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			tr := func(ctx context.Context, tx pgx.Tx, e event.Of[moved]) error {
				if e.Data.N == 2 {
					return errNone
				}
				return keep(ctx, tx, e)
			}
			w.start(tr, policy(rule))
			w.move("a")
			second := w.record("a")
			w.publish(second)
			w.move("a")
			w.until("the key goes on", func() bool { return w.effects("a") == 2 && len(w.parked()) == 0 })
			again := *second
			w.publish(&again)
			w.until("read again", func() bool { return w.next() == 4 })
			if n := w.number(`SELECT count(*) FROM waybill.dead_action WHERE action = 'drop' AND by = 'policy' AND reason = 'rule none' AND event_id::text = $1`, headerOf(second, event.HeaderID)); n != 1 {
				t.Errorf("%d notes of the drop, want 1", n)
			}
		})
	}
}

// Stopped at the first failure, or after parked tries.
func TestAPartitionStopsAtWhatItsRuleSays(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]Rule{
		"at once": When("fatal", Is(errFatal)).ThenStop(),
		"parked":  When("fatal", Is(errFatal)).Park(1, quick).ThenStop(),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 1)
			f := &failing{errs: map[string]error{"a": errFatal}}
			m := w.start(f.keep, policy(rule), func(s *setup) { s.cfg.Workers = 1; s.cfg.MaxInFlight = 10 })
			w.move("a")
			w.until("an incident", func() bool {
				seen, err := incident.List(t.Context(), w.db, time.Time{}, 10)
				return err == nil && len(seen) == 1 && seen[0].Kind == "partition_stopped"
			})
			tries := f.tries.Load()
			for range 5 {
				w.move("b", "b", "a", "b")
			}
			<-time.After(300 * time.Millisecond) // a partition that goes on would have handled them
			if n := w.number(`SELECT count(*) FROM effect`); n != 0 || f.tries.Load() != tries {
				t.Errorf("%d effects, %d tries more", n, f.tries.Load()-tries)
			}
			m.end(t)
			f.mended.Store(true)
			w.start(f.keep)
			w.settled()
		})
	}
}

// An outage comes before every rule.
func TestInfrastructureIsNoRulesBusiness(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	f := &failing{errs: map[string]error{"a": errBusy}}
	w.start(f.keep, policy(When("all", func(error) bool { return true }).ThenDrop()), func(s *setup) {
		s.cfg.Infrastructure = func(err error) bool { return errors.Is(err, errBusy) || outOfReach(err) }
	})
	w.move("a", "b")
	w.until("it was tried", func() bool { return f.tries.Load() > 3 && w.effects("b") == 1 })
	f.mended.Store(true)
	w.settled()
}

func TestAPolicyThatCannotBeMeantIsRefused(t *testing.T) {
	for want, p := range map[string]Policy{
		`class "No"`:       {When("No", Is(errBusy))},
		`knows no error`:   {When("ok", Is(errBusy)), When("none", nil)},
		`below zero`:       {When("ok", Is(errBusy)).Try(-1, quick)},
		`add Park`:         {When("ok", Is(errBusy)).For(time.Hour)},
		`a shorter name`:   nil,
		`in letters, digi`: nil,
	} {
		group := map[string]string{`a shorter name`: strings.Repeat("g", 240), `in letters, digi`: "a group"}[want]
		if group == "" {
			group = "g"
		}
		w := New(Deps{}, Config{Group: group, Policy: p})
		On(w, func(context.Context, pgx.Tx, event.Of[moved]) error { return nil })
		if err := errors.Join(w.cfg.Policy.check(), w.checkDeadTopics()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestABackoffGrowsUpToItsEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "from"))
		to := time.Duration(rapid.Int64Range(0, int64(24*time.Hour)).Draw(t, "to"))
		b := Between(from, to).By(rapid.Float64().Draw(t, "factor"))
		n := rapid.IntRange(0, 1<<20).Draw(t, "n")
		if d := b.after(n); d < 0 || d > max(from, to) {
			t.Fatalf("%s", d)
		}
		if d := b.after(1); d < min(from, max(from, to))/2 {
			t.Fatalf("the first wait is %s of %s", d, from)
		}
	})
}

// What docs/OPERATIONS.md says of the default.
func TestByDefaultAnEventDiesWithinHours(t *testing.T) {
	r := (Config{}).withDefaults().Retry.rule(errBusy)
	var most time.Duration
	n := 1
	for ; ; n++ {
		if _, rests := r.rest(n, most); !rests {
			break
		}
		most += time.Duration(min(float64(r.park.To), float64(r.park.From)*pow(r.park.Factor, n-1)))
	}
	if n != 11 || most < 2*time.Hour || most > 4*time.Hour {
		t.Errorf("after %d failures and at most %s", n, most)
	}
}

func pow(f float64, n int) float64 {
	out := 1.0
	for range n {
		out *= f
	}
	return out
}
