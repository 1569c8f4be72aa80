package cdc

import (
	"slices"
	"strings"
)

// finding is what reconcile found of one table.
type finding struct {
	Table
	facts   *facts
	in      *publishedTable // nil if it is not in the publication
	gone    *string         // a table that is not configured any more
	problem string          // why it is not to be published
	state   *state          // as it should be kept

	publish, withhold bool   // to be added to the publication, or taken out
	reason            string // for a snapshot, if there is one
	sweep             bool
	known             string // the problem that was told before
	incident, text    string // to be told
}

// suspend leaves the table out, saying why unless that was said before.
func (f *finding) suspend(problem string) {
	f.problem, f.state.Error = problem, &problem
	f.reason, f.sweep, f.incident, f.text = "", false, "", ""
	if problem != f.known {
		f.incident, f.text = incidentSuspended, "is not published: "+problem
	}
}

func (f *finding) name() string {
	if f.gone != nil {
		return *f.gone
	}
	return f.String()
}

// judge compares a configured table with what was known of it.
func judge(t Table, f *facts, before *state, in *publishedTable, topicID string) finding {
	out := finding{Table: t, facts: f, in: in, problem: f.problem(t)}
	out.state = &state{Name: t.String(), Topic: t.Topic, TopicID: topicID, KeyColumns: []string{}, Columns: []string{}}
	if f != nil {
		out.state.Relation, out.state.KeyColumns, out.state.Columns, out.state.Identity = int64(f.oid), f.key(), f.published(t), f.identity
		out.state.Attributes = f.attrs
	}
	if before != nil && before.Error != nil {
		out.known = *before.Error
	}
	if out.problem != "" {
		out.withhold = in != nil
		out.suspend(out.problem)
		return out
	}
	out.publish = in == nil || in.narrowed
	out.withhold = in != nil && in.narrowed
	out.reason, out.sweep = changed(t, f, before, out.state, in)
	if out.reason == "" {
		out.state.Columns = append(out.state.Columns, gone(before.Columns, out.state.Columns)...)
	}
	if out.reason != "" && before != nil && out.sweep {
		out.incident, out.text = incidentAnew, "is read again: "+out.reason
	}
	return out
}

// changed says why a table that can be published is to be read, and whether
// keys may have gone without an event.
func changed(t Table, f *facts, before, now *state, in *publishedTable) (reason string, sweep bool) {
	switch {
	case before == nil:
		return "it is new", true
	case before.Error != nil:
		what, _, _ := strings.Cut(*before.Error, ": ") // what mended it is done
		return "it is published again; before, " + what, true
	case before.Relation != now.Relation:
		return "it was dropped and made anew", true
	case !slices.Equal(before.KeyColumns, now.KeyColumns):
		return "its primary key changed", true
	case before.TopicID != now.TopicID || before.Topic != now.Topic:
		return "its topic is another one", true
	case in == nil:
		return "somebody took it out of the publication", true
	case in.narrowed:
		return "somebody narrowed its publication to some rows, columns or operations", true
	case !f.grewEmpty(t, before):
		return "its columns changed without an event for each row", false
	}
	return "", false
}
