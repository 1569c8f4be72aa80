package alert

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// SyntaxError is a sentence that is not understood.
type SyntaxError struct {
	Sentence string
	Column   int // of the first character that does not fit, from 1
	Want     string
}

func (e *SyntaxError) Error() string {
	at := e.Sentence
	if i := e.Column - 1; i <= len(at) {
		at = at[i:]
	}
	if at == "" {
		at = "the end"
	} else {
		at = strconv.Quote(cut(at, 24))
	}
	return fmt.Sprintf("column %d, at %s: want %s", e.Column, at, e.Want)
}

func cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

const maxSentence = 1 << 10 // bytes

// Parse reads a sentence:
//
//	time lag > 30s for 1m and not draining
//	events > 100000 for 5m
//	stalled
//	no members for 1m
//	dead letters grow
//	parked keys > 10
//	time lag > 5m clear for 10m
//	99% of the time under 30s over 30d
//
// Conditions are joined by "and", each may be negated by "not": time lag,
// events and parked keys compared with > or <, and stalled, rewound, retention,
// no members, draining, unknown, dead letters grow. "for" is how long all of it
// must be true before the rule fires, "clear for" how long it must not be before
// it clears, 1m unless said. The last form is an objective: it fires when its
// budget of bad time burns too fast, 14.4 times over a 720th of the window or
// six times over a 120th. Times have a unit: 30s, 5m, 2h, 30d.
//
// An error is a *SyntaxError with the place and what was expected there.
func Parse(sentence string) (Rule, error) {
	p := &parser{text: sentence}
	if len(sentence) > maxSentence {
		return Rule{}, &SyntaxError{sentence, maxSentence + 1, fmt.Sprintf("a sentence of at most %d bytes", maxSentence)}
	}
	p.scan()
	r := Rule{Sentence: sentence, clear: time.Minute}
	err := p.rule(&r)
	return r, err
}

type token struct {
	text string
	at   int // byte offset
}

type parser struct {
	text   string
	tokens []token
	i      int
}

// scan parts words at blanks and at > and <.
func (p *parser) scan() {
	start := -1
	flush := func(end int) {
		if start >= 0 {
			p.tokens = append(p.tokens, token{p.text[start:end], start})
			start = -1
		}
	}
	for i, r := range p.text {
		switch {
		case unicode.IsSpace(r):
			flush(i)
		case r == '>' || r == '<':
			flush(i)
			p.tokens = append(p.tokens, token{string(r), i})
		case start < 0:
			start = i
		}
	}
	flush(len(p.text))
}

func (p *parser) peek() string {
	if p.i < len(p.tokens) {
		return strings.ToLower(p.tokens[p.i].text)
	}
	return ""
}

// accept takes the words if they come next.
func (p *parser) accept(words ...string) bool {
	for i, w := range words {
		if p.i+i >= len(p.tokens) || !strings.EqualFold(p.tokens[p.i+i].text, w) {
			return false
		}
	}
	p.i += len(words)
	return true
}

func (p *parser) fail(want string) error {
	at := len(p.text)
	if p.i < len(p.tokens) {
		at = p.tokens[p.i].at
	}
	return &SyntaxError{p.text, at + 1, want}
}

func (p *parser) rule(r *Rule) error {
	if strings.HasSuffix(p.peek(), "%") {
		return p.objective(r)
	}
	heldFor := false
	for {
		t, err := p.term()
		if err != nil {
			return err
		}
		r.terms = append(r.terms, t)
		if !heldFor && p.accept("for") {
			heldFor = true
			if r.hold, err = p.duration(); err != nil {
				return err
			}
		}
		if p.accept("and") {
			continue
		}
		if p.accept("clear", "for") {
			if r.clear, err = p.duration(); err != nil {
				return err
			}
		}
		if p.i < len(p.tokens) {
			if heldFor {
				return p.fail(`"and", "clear for", or the end`)
			}
			return p.fail(`"and", "for", "clear for", or the end`)
		}
		return nil
	}
}

// conditions are the words of what needs no number.
var conditions = []struct {
	words   []string
	subject subject
}{
	{[]string{"stalled"}, stalled},
	{[]string{"rewound"}, rewound},
	{[]string{"retention"}, retention},
	{[]string{"draining"}, draining},
	{[]string{"unknown"}, isUnknown},
	{[]string{"no", "members"}, noMembers},
	{[]string{"dead", "letters", "grow"}, deadLetters},
}

func (p *parser) term() (t term, err error) {
	t.negated = p.accept("not")
	for _, c := range conditions {
		if p.accept(c.words...) {
			t.subject = c.subject
			return t, nil
		}
	}
	switch {
	case p.accept("time", "lag"):
		t.subject = timeLag
	case p.accept("events"):
		t.subject = events
	case p.accept("parked", "keys"):
		t.subject = parkedKeys
	default:
		return t, p.fail("a condition: time lag, events, parked keys, stalled, rewound, retention, no members, draining, unknown, or dead letters grow")
	}
	switch {
	case p.accept(">"):
	case p.accept("<"):
		t.less = true
	default:
		return t, p.fail("> or <")
	}
	if t.subject == timeLag {
		d, err := p.duration()
		t.than = d.Seconds()
		return t, err
	}
	n, err := strconv.ParseInt(p.peek(), 10, 64)
	if err != nil || n < 0 {
		return t, p.fail("a number of them, such as 1000")
	}
	p.i++
	t.than = float64(n)
	return t, nil
}

// maxDuration is ten years: more is a mistake.
const maxDuration = 3650 * 24 * time.Hour

func (p *parser) duration() (time.Duration, error) {
	text := p.peek()
	const want = "a time above zero with its unit, such as 30s, 5m, 2h or 30d"
	d, err := time.ParseDuration(text)
	if days, ok := strings.CutSuffix(text, "d"); ok {
		var n int64
		if n, err = strconv.ParseInt(days, 10, 32); err == nil {
			d = time.Duration(min(max(n, 0), 100_000)) * 24 * time.Hour
		}
	}
	if err != nil || d <= 0 || d > maxDuration {
		return 0, p.fail(want)
	}
	p.i++
	return d, nil
}

func (p *parser) objective(r *Rule) (err error) {
	share, err := strconv.ParseFloat(strings.TrimSuffix(p.peek(), "%"), 64)
	if err != nil || !(share > 0 && share < 100) {
		return p.fail("a share above 0% and below 100%, such as 99%")
	}
	p.i++
	o := &Objective{Share: share / 100}
	if !p.accept("of", "the", "time", "under") {
		return p.fail(`"of the time under"`)
	}
	if o.Under, err = p.duration(); err != nil {
		return err
	}
	if !p.accept("over") {
		return p.fail(`"over" and the time it is judged by, such as "over 30d"`)
	}
	if o.Window, err = p.duration(); err != nil {
		return err
	}
	if o.Window < time.Hour {
		p.i--
		return p.fail("a window of an hour at least")
	}
	r.objective = o
	if p.i < len(p.tokens) {
		return p.fail("the end")
	}
	return nil
}
