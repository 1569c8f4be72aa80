package saga

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Timeline draws an instance for a terminal of 80 columns, without colour: what
// was seen in the order of the events' own times, each with what caused it and
// how long that took, and between them what was overdue and what operators did.
// Clocks of different services may disagree: an effect may then stand before its
// cause.
func Timeline(d Detail, now time.Time) string {
	var b strings.Builder
	drawHead(&b, d, now)
	b.WriteByte('\n')
	drawLines(&b, linesOf(d))
	drawFoot(&b, d, now)
	return b.String()
}

const width = 80

// line is an entry, or an event's entries, as they are drawn.
type line struct {
	mark   string // the event's number, or what kind of line it is
	after  string // since the start
	waited string // since its cause
	text   string // of what is no event
	cells  [4]string
}

func drawHead(b *strings.Builder, d Detail, now time.Time) {
	state := strings.ReplaceAll(string(d.State), "_", " ")
	if d.EndedAt != nil {
		state += " in " + span(d.EndedAt.Sub(d.StartedAt))
	} else {
		state += " for " + span(now.Sub(d.StartedAt))
	}
	b.WriteString(cut(printable(d.Saga+"  "+d.Key), width) + "\n")
	fmt.Fprintf(b, "round %d, %s, begun %s\n", d.Round, state, d.StartedAt.UTC().Format("2006-01-02 15:04:05.000 MST"))
	var steps []string
	for _, s := range d.Steps {
		steps = append(steps, s.Name+" "+s.Is)
	}
	for _, l := range wrap(strings.Join(steps, " > "), width) {
		b.WriteString(l + "\n")
	}
}

// cause is what other lines name as theirs: an event, or an ask or skip that
// services were told of.
type cause struct {
	mark string
	at   time.Time
}

// linesOf makes a line of each event and of each thing that was done about them.
func linesOf(d Detail) []line {
	entries := slices.Clone(d.Entries)
	slices.SortStableFunc(entries, func(a, b Entry) int {
		return cmp.Or(a.Time.Compare(b.Time), a.SeenAt.Compare(b.SeenAt), strings.Compare(a.ID.String(), b.ID.String()))
	})
	var out []line
	causes, n := map[string]cause{}, 0
	for i := range entries {
		e := &entries[i]
		id := e.ID.String()
		if known, ok := causes[id]; ok { // it means several things
			l := &out[slices.IndexFunc(out, func(l line) bool { return l.mark == known.mark })]
			l.cells[2] += ", " + meaning(e)
			continue
		}
		l := line{after: offset(e.Time.Sub(d.StartedAt))}
		if !e.IsEvent() {
			l.mark, l.text = e.mark(), printable(e.told(d))
			out = append(out, l)
			if e.ToldAs != nil {
				causes[e.ToldAs.String()] = cause{l.mark, e.Time}
			}
			continue
		}
		n++
		l.mark = strconv.Itoa(n)
		causes[id] = cause{l.mark, e.Time}
		l.cells = [4]string{printable(strings.TrimPrefix(e.Source, "/")), printable(shortType(e.Type)), meaning(e), ""}
		if by, ok := causes[e.CausationID]; ok && e.CausationID != id {
			l.waited, l.cells[3] = span(e.Time.Sub(by.at)), by.mark
		}
		out = append(out, l)
	}
	return out
}

func meaning(e *Entry) string {
	if e.Step == "" {
		return string(e.What)
	}
	return printable(e.Step) + " " + string(e.What)
}

// mark is what a line begins with that is no event.
func (e *Entry) mark() string {
	switch e.What {
	case Asked:
		return "!"
	case GaveUp:
		return "!!"
	case Resumed, Skipped:
		return ">"
	case Started, Done, Failed, Undone, Aborted:
	}
	return ""
}

// told is such a line's text.
func (e *Entry) told(d Detail) string {
	because := ""
	if e.Reason != "" {
		because = ": " + e.Reason
	}
	switch e.What {
	case Asked:
		text := fmt.Sprintf("overdue: %s is not %s, asked", e.Step, participle(e.Direction))
		if e.Asked > 1 {
			text += fmt.Sprintf(" %d times", e.Asked)
		}
		if e.DueAt != nil {
			text += ", due " + offset(e.DueAt.Sub(d.StartedAt))
		}
		return text
	case GaveUp:
		return fmt.Sprintf("operator needed: %s is not %s, asked %d times in vain", e.Step, participle(e.Direction), e.Asked)
	case Resumed:
		return e.By + " has it asked for anew" + because
	case Skipped:
		return fmt.Sprintf("%s skips: %s counts as %s%s", e.By, e.Step, participle(e.Direction), because)
	case Started, Done, Failed, Undone, Aborted:
	}
	return ""
}

// drawFoot says what comes next, and what a person may do.
func drawFoot(b *strings.Builder, d Detail, now time.Time) {
	if d.LeftOut > 0 {
		fmt.Fprintf(b, "%d more events said nothing new\n", d.LeftOut)
	}
	if d.State.Ended() || d.Since == nil {
		return
	}
	text := fmt.Sprintf("waits for %s to be %s, for %s", d.Step, participle(d.Direction), span(now.Sub(*d.Since)))
	switch {
	case d.State == NeedsOperator:
		text += "; nobody is asked any more"
	case d.DueAt == nil:
		text += "; without a deadline"
	case d.DueAt.After(now):
		text += "; overdue in " + span(d.DueAt.Sub(now))
	default:
		text += "; overdue by " + span(now.Sub(*d.DueAt))
	}
	b.WriteByte('\n')
	for _, l := range wrap(text, width) {
		b.WriteString(l + "\n")
	}
}

// shortType is the last word of a type's name.
func shortType(t string) string { return t[strings.LastIndexByte(t, '.')+1:] }

// offset is a time since the start, signed.
func offset(d time.Duration) string {
	switch {
	case d == 0:
		return "0 ms"
	case d < 0:
		return "-" + span(-d)
	}
	return "+" + span(d)
}

// span is a length of time in three digits or two units.
func span(d time.Duration) string {
	switch {
	case d < 0:
		return "-" + span(-d)
	case d < 10*time.Millisecond && d%time.Millisecond != 0:
		return strconv.FormatFloat(float64(d)/1e6, 'f', 1, 64) + " ms"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < 10*time.Second:
		return strconv.FormatFloat(d.Truncate(10*time.Millisecond).Seconds(), 'f', 2, 64) + " s"
	case d < time.Minute:
		return strconv.FormatFloat(d.Truncate(100*time.Millisecond).Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour:
		return fmt.Sprintf("%dm %ds", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh %dm", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%dd %dh", d/(24*time.Hour), d%(24*time.Hour)/time.Hour)
}

// printable keeps a stored text from commanding the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !strconv.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

func cut(s string, n int) string {
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return string([]rune(s)[:max(n-1, 0)]) + "…"
}
