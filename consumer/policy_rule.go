package consumer

import (
	"context"
	"errors"
	"time"
)

// ErrUnreadable is an event whose headers or value cannot be read, as the error
// of its failure.
var ErrUnreadable = errors.New("decode")

// Permanent marks an error that another try would not mend: the event's tries
// end at once. It is nil if err is.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanentError{err}
}

type permanentError struct{ err error }

func (e *permanentError) Error() string { return e.err.Error() }
func (e *permanentError) Unwrap() error { return e.err }

// Classes of errors that no rule of the policy knows.
const (
	classPermanent  = "permanent"
	classUnreadable = "unreadable"
	classPanic      = "panic"
	classTimeout    = "timeout"
	classOther      = "other"
)

// rule is what the group does about an event's error.
func (g *Group) rule(err error) Rule {
	if _, late := asGap(err); late != nil {
		return When(classLate, nil) // nobody but a person can decide about it
	}
	r := g.cfg.Retry.rule(err)
	for _, named := range g.cfg.Policy {
		if named.knows(err) {
			r = named
			break
		}
	}
	if As[*permanentError]()(err) {
		r.try.n, r.park.n = 0, 0
	}
	return r
}

// rule is Retry as a rule.
func (r Retry) rule(err error) Rule {
	return When(classOf(err), nil).
		Try(r.Attempts, Between(r.Pause, r.Within)).
		Park(r.ParkAttempts, Between(r.Park, r.ParkMax).By(r.ParkFactor))
}

func classOf(err error) string {
	switch {
	case As[*permanentError]()(err):
		return classPermanent
	case errors.Is(err, ErrUnreadable):
		return classUnreadable
	case As[*PanicError]()(err), errors.Is(err, errGone):
		return classPanic
	case errors.Is(err, context.DeadlineExceeded):
		return classTimeout
	}
	return classOther
}

// again tells whether an event that failed n times in place, first so long ago,
// is tried there once more, and after how long.
func (r Rule) again(n int, since, within time.Duration) (wait time.Duration, yes bool) {
	if n >= r.try.n {
		return 0, false
	}
	wait = r.try.after(n)
	return wait, since+wait < within
}

// rest tells whether an event that failed n times since it is parked is tried
// there once more, and after how long. Its arrival counts as the first failure,
// a redrive as none.
func (r Rule) rest(n int, since time.Duration) (wait time.Duration, yes bool) {
	if n > r.park.n || (r.lasts > 0 && since > r.lasts) {
		return 0, false
	}
	return r.park.after(n), true
}
