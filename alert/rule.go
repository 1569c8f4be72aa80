package alert

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Rule is what to watch for. Make one with [Parse].
type Rule struct {
	Name     string
	Severity string   // a word for the receiver: "critical", "warning"
	Groups   []string // only these; all if empty
	Sentence string   // as it was written

	terms     []term
	objective *Objective // instead of terms
	hold      time.Duration
	clear     time.Duration
}

// Objective is a promise about lag: Share of the time under Under, over Window.
type Objective struct {
	Share  float64 // 0.99
	Under  time.Duration
	Window time.Duration
}

// verdict is what a sentence is just now.
type verdict int

const (
	unknown verdict = iota
	no
	yes
)

func truth(b bool) verdict {
	if b {
		return yes
	}
	return no
}

func (v verdict) not() verdict {
	switch v {
	case yes:
		return no
	case no:
		return yes
	default:
		return unknown
	}
}

// subject is what a term is about, one of a closed set.
type subject string

const (
	timeLag     subject = "time lag"
	events      subject = "events"
	parkedKeys  subject = "parked keys"
	draining    subject = "draining"
	stalled     subject = "stalled"
	rewound     subject = "rewound"
	retention   subject = "retention"
	noMembers   subject = "no members"
	isUnknown   subject = "unknown"
	deadLetters subject = "dead letters grow"
)

// term is one of the conditions that a sentence joins.
type term struct {
	subject subject
	negated bool
	less    bool // compared by < instead of >
	than    float64
}

func (t term) holds(r *Reading, grew bool) verdict {
	v := t.plain(r, grew)
	if t.negated {
		return v.not()
	}
	return v
}

func (t term) plain(r *Reading, grew bool) verdict {
	switch t.subject {
	case timeLag:
		return t.compareLag(r)
	case events:
		return t.compare(r.Events)
	case parkedKeys:
		return t.compare(r.ParkedKeys)
	case draining:
		if r.Draining == nil {
			return unknown
		}
		return truth(*r.Draining)
	case noMembers:
		if r.Members == nil || r.Events == nil && !r.Known {
			return unknown
		}
		behind := r.Events == nil || *r.Events > 0 // what has nothing to read needs nobody
		return truth(*r.Members == 0 && behind)
	case deadLetters:
		return truth(grew)
	case isUnknown:
		return truth(!r.Known)
	case stalled:
		return found(r, r.Stalled)
	case rewound:
		return found(r, r.Rewound)
	case retention:
		return found(r, r.Overtaken)
	}
	return unknown
}

// found is what was seen of some partition; that it was not seen tells nothing
// while nothing is known.
func found(r *Reading, seen bool) verdict {
	if !seen && !r.Known {
		return unknown
	}
	return truth(seen)
}

func (t term) compare(n *int64) verdict {
	if n == nil {
		return unknown
	}
	if t.less {
		return truth(float64(*n) < t.than)
	}
	return truth(float64(*n) > t.than)
}

// compareLag takes the greatest time that is known: that it is too much is
// certain also where others are unknown, that it is not is not.
func (t term) compareLag(r *Reading) verdict {
	switch {
	case r.Seconds == nil:
		return unknown
	case *r.Seconds > t.than:
		return truth(!t.less)
	case r.Partial:
		return unknown
	}
	return truth(t.less && *r.Seconds < t.than)
}

// holds is true if all terms are, and false as soon as one is.
func (r *Rule) holds(reading *Reading, grew bool) verdict {
	out := yes
	for _, t := range r.terms {
		switch t.holds(reading, grew) {
		case no:
			return no
		case unknown:
			out = unknown
		case yes:
		}
	}
	return out
}

func (r *Rule) watches(group string) bool {
	return len(r.Groups) == 0 || slices.Contains(r.Groups, group)
}

// Defaults are the rules that hold where none are configured.
func Defaults() []Rule {
	var out []Rule
	for _, r := range []struct{ name, severity, sentence string }{
		{"behind", "warning", "time lag > 30s for 1m and not draining"},
		{"stalled", "critical", "stalled"},
		{"no members", "critical", "no members for 1m"},
		{"retention", "critical", "retention"},
		{"rewound", "warning", "rewound"},
		{"dead letters", "warning", "dead letters grow"},
		{"unknown", "warning", "unknown for 5m"},
	} {
		rule, err := Parse(r.sentence)
		if err != nil {
			panic(fmt.Sprintf("default rule %s: %v", r.name, err)) // a test reads them all
		}
		rule.Name, rule.Severity = r.name, r.severity
		out = append(out, rule)
	}
	return out
}

// About is what the rule means, for people.
func (r *Rule) About() string { return strings.TrimSpace(r.Sentence) }
