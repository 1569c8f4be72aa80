package saga

import (
	"time"

	"github.com/google/uuid"
)

// facts is what the entries of an instance come to: of each kind when it was
// first seen.
type facts struct {
	steps   []stepFacts // as in the plan
	back    bool        // something failed, was undone, or aborted it
	turned  time.Time   // since when
	first   time.Time   // anything was seen
	resumed time.Time   // last
	started time.Time   // by the events' own time
	last    time.Time   // event or skip, likewise
}

type stepFacts struct {
	done, undone, skippedForward, skippedBack time.Time
}

func factsOf(p *plan, entries []Entry) *facts {
	f := &facts{steps: make([]stepFacts, len(p.Steps))}
	var begun time.Time
	for i := range entries {
		e := &entries[i]
		if e.What == Started {
			begun = sooner(begun, e.Time)
		}
		if e.IsEvent() {
			f.first, f.started = sooner(f.first, e.SeenAt), sooner(f.started, e.Time)
		}
		if e.What == Resumed {
			f.resumed = later(f.resumed, e.SeenAt)
		}
		if e.What == Failed || e.What == Undone || e.What == Aborted {
			f.back, f.turned = true, sooner(f.turned, e.SeenAt)
		}
		if e.IsEvent() || e.What == Skipped {
			f.last = later(f.last, e.Time)
		}
		f.ofStep(p, e)
	}
	if !begun.IsZero() {
		f.started = begun
	}
	return f
}

func (f *facts) ofStep(p *plan, e *Entry) {
	i := p.step(e.Step)
	if i < 0 { // none, or of an older declaration
		return
	}
	st := &f.steps[i]
	switch {
	case e.What == Done:
		st.done = sooner(st.done, e.SeenAt)
	case e.What == Undone:
		st.undone = sooner(st.undone, e.SeenAt)
	case e.What == Skipped && e.Direction == Forward:
		st.skippedForward = sooner(st.skippedForward, e.SeenAt)
	case e.What == Skipped:
		st.skippedBack = sooner(st.skippedBack, e.SeenAt)
	}
}

type asks struct {
	n      int
	last   time.Time
	gaveUp bool
}

// asksOf counts how often a step was asked for since an operator last resumed.
func (f *facts) asksOf(entries []Entry, step string, d Direction) (a asks) {
	counted := map[uuid.UUID]bool{}
	for i := range entries {
		e := &entries[i]
		if e.Step != step || e.Direction != d || !e.SeenAt.After(f.resumed) {
			continue
		}
		switch e.What {
		case Asked:
			a.last = later(a.last, e.SeenAt)
			if !counted[e.ID] {
				counted[e.ID] = true
				a.n++
			}
		case GaveUp:
			a.gaveUp = true
		case Started, Done, Failed, Undone, Aborted, Resumed, Skipped:
		}
	}
	return a
}
