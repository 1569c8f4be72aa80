package saga

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"
)

// plan is what of a saga the judgement of an instance needs: plain data, which
// is kept in the database too, so that an operator's tool judges as the observer
// does.
type plan struct {
	Name  string     `json:"name"`
	Steps []planStep `json:"steps"`
}

type planStep struct {
	Name   string        `json:"name"`
	Undo   bool          `json:"undo"`   // there is something to undo
	Within time.Duration `json:"within"` // 0: no deadline
	Pause  time.Duration `json:"pause"`
	Asks   int           `json:"asks"`
}

func (p *plan) step(name string) int {
	return slices.IndexFunc(p.Steps, func(s planStep) bool { return s.Name == name })
}

// planOf fills in what a declaration left open.
func planOf(s Saga) plan {
	p := plan{Name: s.Name}
	for _, st := range s.Steps {
		ps := planStep{Name: st.Name, Undo: len(st.Undone) > 0, Within: st.Within, Pause: st.Pause, Asks: st.Asks}
		if ps.Within == 0 {
			ps.Within = defaultWithin
		}
		if ps.Asks <= 0 {
			ps.Asks = defaultAsks
		}
		if ps.Pause <= 0 {
			ps.Pause = max(ps.Within, time.Second)
		}
		ps.Within = max(ps.Within, 0)
		p.Steps = append(p.Steps, ps)
	}
	return p
}

// pauseAfter is the time between the nth ask and the next.
func (s planStep) pauseAfter(n int) time.Duration {
	d := s.Pause
	for ; n > 1 && d < pauseMost; n-- {
		d *= 2
	}
	return min(d, pauseMost)
}

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*$`)

func checkName(what, name string) error {
	if len(name) > maxName || !nameForm.MatchString(name) {
		return fmt.Errorf("%s %q: want at most %d lower-case letters, digits and -", what, name, maxName)
	}
	return nil
}

// check tells what is wrong with a declaration.
func (s Saga) check() error {
	errs := []error{checkName("saga", s.Name)}
	if len(s.Start) == 0 {
		errs = append(errs, fmt.Errorf("saga %s: which event begins it? give Start", s.Name))
	}
	if len(s.Steps) == 0 || len(s.Steps) > maxSteps {
		errs = append(errs, fmt.Errorf("saga %s has %d steps: want 1 to %d", s.Name, len(s.Steps), maxSteps))
	}
	names := map[string]bool{}
	events := Either(s.Start, s.Abort)
	for _, st := range s.Steps {
		events = Either(events, st.Done, st.Failed, st.Undone)
		if err := checkName("step", st.Name); err != nil {
			errs = append(errs, fmt.Errorf("saga %s: %w", s.Name, err))
		}
		if names[st.Name] {
			errs = append(errs, fmt.Errorf("saga %s has two steps %s", s.Name, st.Name))
		}
		names[st.Name] = true
		if len(st.Done) == 0 {
			errs = append(errs, fmt.Errorf("saga %s, step %s: which event says that it is done? give Done", s.Name, st.Name))
		}
	}
	for _, e := range events {
		if e.contract.Topic == Topics()[0].Name {
			errs = append(errs, fmt.Errorf("saga %s: %s is what an observer publishes, and cannot be part of what it observes", s.Name, e.contract.Type))
		}
	}
	return errors.Join(errs...)
}
