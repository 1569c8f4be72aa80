package consumer

import (
	"errors"
	"fmt"
	"regexp"
	"time"
)

// Policy is what happens to events that fail, by the class of their error. The
// first rule that knows the error holds; what none knows follows Config.Retry.
//
//	consumer.Policy{
//		consumer.When("no account", consumer.Is(ErrNoAccount)).ThenDrop(),
//		consumer.When("busy", consumer.Is(ErrBusy)).
//			Try(5, consumer.Between(50*time.Millisecond, time.Second)).
//			Park(20, consumer.Between(time.Second, time.Hour)).For(24 * time.Hour).ThenDead(),
//		consumer.When("misconfigured", consumer.As[*ConfigError]()).ThenStop(),
//	}
//
// A failure of infrastructure comes before every rule: it counts against no
// event. An error made by [Permanent] skips the tries of its rule.
type Policy []Rule

// Rule is one sentence of a [Policy]. What it does not mention does not happen:
// without Try and Park, the first failure is the end. Its end is death unless
// it says otherwise.
type Rule struct {
	class     string
	knows     func(error) bool
	try, park tries
	lasts     time.Duration
	end       end
}

type tries struct {
	n int
	Backoff
}

// end is what becomes of an event whose tries are used up.
type end int

const (
	endDead end = iota
	endDrop
	endStop
)

// When begins a rule for the errors that knows tells. The class names them in
// metrics, dead letters and lists: 1 to 40 small letters, digits, spaces, - and _.
func When(class string, knows func(error) bool) Rule { return Rule{class: class, knows: knows} }

// Is knows errors that are one of the targets, by errors.Is.
func Is(targets ...error) func(error) bool {
	return func(err error) bool {
		for _, t := range targets {
			if errors.Is(err, t) {
				return true
			}
		}
		return false
	}
}

// As knows errors that are of type E, by errors.As.
func As[E error]() func(error) bool {
	return func(err error) bool {
		var e E
		return errors.As(err, &e)
	}
}

// Try has the event tried n times in place, the first included, b apart. Only
// its key waits, in memory and so for no longer than Config.Retry.Within.
func (r Rule) Try(n int, b Backoff) Rule { r.try = tries{n, b}; return r }

// Park has the event then moved to the parked table and tried n times more, b
// apart.
func (r Rule) Park(n int, b Backoff) Rule { r.park = tries{n, b}; return r }

// For ends the parked tries once d has gone since the first failure, or since
// the redrive, however many are left.
func (r Rule) For(d time.Duration) Rule { r.lasts = d; return r }

// ThenDead makes the event dead: it keeps its place before the others of its
// key, and a copy goes to the dead letter topic.
func (r Rule) ThenDead() Rule { r.end = endDead; return r }

// ThenDrop passes the event over for good, as if it had been handled. It is
// noted in waybill.dead_action; its effects do not happen.
func (r Rule) ThenDrop() Rule { r.end = endDrop; return r }

// ThenStop stops the whole partition before the event: nothing of it is handled
// any more until another member takes it over, or this one runs again.
func (r Rule) ThenStop() Rule { r.end = endStop; return r }

var className = regexp.MustCompile(`^[a-z0-9][a-z0-9 _-]{0,39}$`)

func (p Policy) check() error {
	for i, r := range p {
		switch {
		case !className.MatchString(r.class):
			return fmt.Errorf("rule %d of the policy: class %q: want 1 to 40 small letters, digits, spaces, - and _", i+1, r.class)
		case r.class == classGap || r.class == classLate:
			return fmt.Errorf("rule %d of the policy: class %q is for what Config.Gaps finds: name it otherwise", i+1, r.class)
		case r.knows == nil:
			return fmt.Errorf("rule %q of the policy knows no error: give When a function, such as consumer.Is(err)", r.class)
		case r.try.n < 0 || r.park.n < 0 || r.lasts < 0:
			return fmt.Errorf("rule %q of the policy: a number or time below zero", r.class)
		case r.lasts > 0 && r.park.n == 0:
			return fmt.Errorf("rule %q of the policy: For bounds parked tries, and there are none: add Park", r.class)
		}
	}
	return nil
}
