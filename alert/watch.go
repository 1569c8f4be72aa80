package alert

import (
	"fmt"
	"time"
)

// grewFor is how long a growth of dead letters is true after it was seen.
const grewFor = 5 * time.Minute

// watch is a rule at work: what it knows of each group.
type watch struct {
	rule   Rule
	groups map[string]*standing
}

// standing is where a rule is with a group.
type standing struct {
	true_ time.Time // since when the sentence is true; zero: it is not
	false time.Time // since when it is false; zero: it is not
	fired time.Time // zero: it is not firing
	seen  time.Time // last reading

	dead *int64 // dead letters at the last reading
	grew time.Time
	burn *burn
}

// change is what must be told of a group.
type change struct {
	group  string
	firing bool // or cleared
	since  time.Time
	text   string
}

func newWatch(r Rule) *watch { return &watch{rule: r, groups: map[string]*standing{}} }

// see takes in readings and says what changed. A group that is no more counts
// as one whose sentence is false.
func (w *watch) see(now time.Time, readings []Reading) (out []change) {
	there := map[string]bool{}
	for i := range readings {
		r := &readings[i]
		there[r.Group] = true
		if !w.rule.watches(r.Group) {
			continue
		}
		s := w.groups[r.Group]
		if s == nil {
			s = &standing{seen: now}
			w.groups[r.Group] = s
		}
		v := w.verdict(now, s, r)
		s.seen = now
		if c, changed := s.advance(now, v, &w.rule); changed {
			c.group, c.text = r.Group, w.text(r)
			out = append(out, c)
		}
	}
	for name, s := range w.groups {
		if there[name] {
			continue
		}
		c, changed := s.advance(now, no, &w.rule)
		if changed {
			c.group, c.text = name, "the group is no more"
			out = append(out, c)
		}
		if s.fired.IsZero() {
			delete(w.groups, name)
		}
	}
	return out
}

func (w *watch) verdict(now time.Time, s *standing, r *Reading) verdict {
	o := w.rule.objective
	if o == nil {
		return w.rule.holds(r, s.growth(now, r))
	}
	if s.burn == nil {
		s.burn = newBurn(o)
	}
	over := term{subject: timeLag, than: o.Under.Seconds()}.plain(r, false)
	// A reading stands for the time since the one before, but not for a night
	// that the process slept.
	s.burn.see(now, min(now.Sub(s.seen), max(o.Window/fastPart/shortPart, time.Millisecond)), over, o)
	return s.burn.holds(now, o)
}

// growth tells whether dead letters have lately become more.
func (s *standing) growth(now time.Time, r *Reading) bool {
	if n := r.DeadLetters; n != nil {
		// The first of them make their topic: what was unknown before counts from 0
		// where the group itself was seen before.
		if s.dead != nil && *n > *s.dead {
			s.grew = now
		}
		s.dead = n
	} else if r.Known && s.dead == nil {
		s.dead = new(int64)
	}
	return !s.grew.IsZero() && now.Sub(s.grew) < grewFor
}

// advance is the machine: true for as long as the rule says, and it fires;
// false for as long as it says, and it clears. In between, and where nothing is
// known, it stays as it is.
func (s *standing) advance(now time.Time, v verdict, r *Rule) (c change, changed bool) {
	switch v {
	case yes:
		s.false = time.Time{}
		if s.true_.IsZero() {
			s.true_ = now
		}
		if s.fired.IsZero() && now.Sub(s.true_) >= r.hold {
			s.fired = now
			return change{firing: true, since: s.true_}, true
		}
	case no:
		s.true_ = time.Time{}
		if s.fired.IsZero() {
			return c, false
		}
		if s.false.IsZero() {
			s.false = now
		}
		if now.Sub(s.false) >= r.clear {
			s.fired, s.false = time.Time{}, time.Time{}
			return change{since: now}, true
		}
	case unknown:
		// How long it was true or false cannot be said of a time that is unknown.
		if !s.fired.IsZero() {
			s.false = time.Time{}
		} else {
			s.true_ = time.Time{}
		}
	}
	return c, false
}

// text is what an alert says of its group.
func (w *watch) text(r *Reading) string {
	text := fmt.Sprintf("group %s: %s", r.Group, w.rule.About())
	if r.Events != nil {
		text += fmt.Sprintf("; %d events behind", *r.Events)
	}
	if r.Seconds != nil {
		text += fmt.Sprintf(", %s", time.Duration(*r.Seconds*float64(time.Second)).Round(time.Second))
	}
	if r.Worst != "" {
		text += "; " + r.Worst
	}
	return cut(text, 1<<10)
}
