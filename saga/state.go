package saga

import "time"

// State of an instance.
type State string

// The states. Running and Compensating wait for a step; NeedsOperator does too,
// and has asked for it as often as is declared. Completed and Compensated are
// ends, but an event that comes after all may reopen either: a step that is
// done after the rest was undone, a cancellation of what was complete.
const (
	Running       State = "running"
	Compensating  State = "compensating"
	Completed     State = "completed"
	Compensated   State = "compensated"
	NeedsOperator State = "needs_operator"
)

// Ended tells whether nothing is waited for.
func (s State) Ended() bool { return s == Completed || s == Compensated }

// States lists them.
func States() []State { return []State{Running, Compensating, NeedsOperator, Completed, Compensated} }

// standing is where an instance stands.
type standing struct {
	State     State
	Step      string    // that is waited for; "" if ended
	Direction Direction // of that step; of an ended instance, how it ended
	Since     time.Time // it is waited for, by the database's clock
	Asked     int       // how often it was asked for, since an operator last resumed
	Due       time.Time // when it is asked for next, or given up; zero: never
	Started   time.Time // by the events' own times
	Ended     time.Time // likewise; zero if it has not
}

// judge tells where an instance stands. It is a function of the set of entries:
// their order and copies of them change nothing.
func judge(p *plan, entries []Entry) standing {
	f := factsOf(p, entries)
	s := standing{State: Running, Direction: Forward, Started: f.started}
	var pending int
	if f.back {
		s.State, s.Direction = Compensating, Back
		pending, s.Since = f.nextBack(p)
	} else {
		pending, s.Since = f.nextForward(p)
	}
	if pending < 0 {
		s.Ended = f.last
		s.State = Completed
		if f.back {
			s.State = Compensated
		}
		return s
	}
	step := p.Steps[pending]
	s.Step = step.Name
	a := f.asksOf(entries, step.Name, s.Direction)
	s.Asked = a.n
	switch {
	case a.gaveUp:
		s.State = NeedsOperator
	case f.resumed.After(s.Since) && a.n == 0:
		s.Due = f.resumed
	case step.Within == 0:
	case a.n == 0:
		s.Due = s.Since.Add(step.Within)
	default:
		s.Due = a.last.Add(step.pauseAfter(a.n))
	}
	return s
}

// nextForward is the first step that is not done, and since when it is its turn.
// It is -1 if there is none.
func (f *facts) nextForward(p *plan) (pending int, since time.Time) {
	since = f.first
	for i := range p.Steps {
		switch st := &f.steps[i]; {
		case !st.done.IsZero():
			since = later(since, st.done)
		case !st.skippedForward.IsZero():
			since = later(since, st.skippedForward)
		default:
			return i, since
		}
	}
	return -1, since
}

// nextBack is the last step that is still to be undone, and since when it is its
// turn: once the saga has turned, the step is done and those after it are
// undone.
func (f *facts) nextBack(p *plan) (pending int, since time.Time) {
	since = f.turned
	for i := len(p.Steps) - 1; i >= 0; i-- {
		st := &f.steps[i]
		if p.Steps[i].Undo && !st.done.IsZero() && st.undone.IsZero() && st.skippedBack.IsZero() {
			return i, later(since, st.done)
		}
		since = later(since, later(st.undone, st.skippedBack))
	}
	return -1, since
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// sooner is the earlier of two times, of which zero is none.
func sooner(a, b time.Time) time.Time {
	if a.IsZero() || (!b.IsZero() && b.Before(a)) {
		return b
	}
	return a
}
