package saga

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
)

// Ask is who does something about an instance, and why. Both are kept in its
// record.
type Ask struct {
	By     string `json:"by"`
	Reason string `json:"reason"`
}

// ErrRefused is what an instance's state does not allow.
var ErrRefused = errors.New("refused")

// ErrInvalid is an ask, or a filter, that makes no sense.
var ErrInvalid = errors.New("invalid")

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrRefused}, args...)...)
}

// Resume has the step that an instance needs an operator for asked for anew, as
// often as is declared: at once, by whichever process observes. Ref.Round 0 is
// the last round; an empty Ref.Tenant finds the instance whoever's it is.
//
// An event that arrives at the same moment is recorded before or after: if it
// moves the instance on, there is nothing to resume.
func Resume(ctx context.Context, db pg.Beginner, r Ref, a Ask) (Instance, error) {
	return intervene(ctx, db, r, a, func(_ *plan, s standing) (Entry, error) {
		switch {
		case s.State.Ended():
			return Entry{}, refused("it is %s: nothing is waited for", s.State)
		case s.State != NeedsOperator && s.Due.IsZero():
			return Entry{}, refused("it waits for step %s, which has no deadline", s.Step)
		case s.State != NeedsOperator:
			return Entry{}, refused("it is %s and needs no operator: step %s is asked for by itself, next at %s", s.State, s.Step, s.Due.UTC().Format(time.RFC3339))
		}
		return Entry{What: Resumed}, nil
	})
}

// Skip says that a step was seen to by hand: what was to be undone counts as
// undone, what was to be done as done. Services are told by
// waybill.saga.StepSkipped, so that the next one goes on. step must be the one
// that is waited for; "" is that one. What is to be done may be skipped only
// once it is overdue.
func Skip(ctx context.Context, db pg.Beginner, r Ref, step string, a Ask) (Instance, error) {
	if strings.TrimSpace(a.Reason) == "" {
		return Instance{}, fmt.Errorf("%w: why is it skipped? a reason is kept with it", ErrInvalid)
	}
	return intervene(ctx, db, r, a, func(p *plan, s standing) (Entry, error) {
		switch {
		case step != "" && p.step(step) < 0:
			return Entry{}, refused("it has no step %s", step)
		case s.State.Ended():
			return Entry{}, refused("it is %s: no step is waited for", s.State)
		case step != "" && step != s.Step:
			return Entry{}, refused("step %s is not its turn: it waits for %s to be %s", step, s.Step, participle(s.Direction))
		case s.State == Running && s.Asked == 0:
			return Entry{}, refused("step %s is not overdue", s.Step)
		}
		return Entry{What: Skipped, Step: s.Step, Direction: s.Direction}, nil
	})
}

// intervene notes what decide makes of an instance's standing, which nobody
// else changes meanwhile.
func intervene(ctx context.Context, db pg.Beginner, r Ref, a Ask, decide func(*plan, standing) (Entry, error)) (in Instance, err error) {
	if err := a.check(); err != nil {
		return in, err
	}
	err = within(ctx, db, r.Tenant, func(tx pgx.Tx) error {
		if r, err = find(ctx, tx, r); err != nil {
			return err
		}
		_, now, err := lock(ctx, tx, r)
		if err != nil {
			return err
		}
		p, err := loadPlan(ctx, tx, r.Saga)
		if err != nil {
			return err
		}
		entries, err := readEntries(ctx, tx, r)
		if err != nil {
			return err
		}
		e, err := decide(&p, judge(&p, entries))
		if err != nil {
			return err
		}
		e.ID, e.SeenAt, e.Time, e.By, e.Reason = event.NewID(), now, now, a.By, a.Reason
		if err := note(ctx, tx, r, e); err != nil {
			return err
		}
		if err := settle(ctx, tx, r, judge(&p, append(entries, e)), now); err != nil {
			return err
		}
		in, err = readInstance(ctx, tx, r)
		return err
	})
	if err != nil {
		return in, fmt.Errorf("saga %s: %w", r, err)
	}
	return in, nil
}

const maxAsk = 1000 // bytes of a name or a reason

func (a *Ask) check() error {
	a.By, a.Reason = strings.TrimSpace(a.By), strings.TrimSpace(a.Reason)
	switch {
	case a.By == "" || len(a.By) > maxAsk:
		return fmt.Errorf("%w: who asks? want a name of at most %d bytes", ErrInvalid, maxAsk)
	case len(a.Reason) > maxAsk:
		return fmt.Errorf("%w: the reason is too long: want at most %d bytes", ErrInvalid, maxAsk)
	case !storable(a.By) || !storable(a.Reason):
		return fmt.Errorf("%w: name and reason must be text", ErrInvalid)
	}
	return nil
}

func storable(s string) bool { return utf8.ValidString(s) && !strings.ContainsRune(s, 0) }
