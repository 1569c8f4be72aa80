package cdc

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/waybillhq/waybill/broker"
)

// reconcile compares the configuration with catalog, publication and topics,
// and puts right what differs. A table that was not published for a time, or
// whose rows changed without events, is read again.
func (s *session) reconcile(ctx context.Context) error {
	s.reconciling.Lock()
	defer s.reconciling.Unlock()
	tables := *s.tables.Load()
	ids, err := s.declareTopics(ctx, tables)
	if err != nil {
		return err
	}
	var found []finding
	err = pgx.BeginFunc(ctx, s.db, func(tx pgx.Tx) error {
		// Whatever holds a table's lock must not hold the stream up.
		if err := exec(ctx, tx, `SET LOCAL lock_timeout = '3s'`); err != nil {
			return err
		}
		found, err = s.compare(ctx, tx, tables, ids)
		if err != nil {
			return err
		}
		return s.apply(ctx, tx, found)
	})
	if err != nil {
		return fmt.Errorf("keep publication %s: %w", s.cfg.Publication, err)
	}
	s.follow(found)
	for _, f := range found {
		switch {
		case f.incident != "":
			s.tell(ctx, f.incident, f.name(), f.name()+" "+f.text, nil)
		case f.reason != "":
			s.log.InfoContext(ctx, "a snapshot is due", "table", f.name(), "because", f.reason)
		case f.gone != nil:
			s.log.InfoContext(ctx, "no longer published", "table", f.name())
		}
	}
	return nil
}

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

func (s *session) compare(ctx context.Context, tx pgx.Tx, tables []Table, topicIDs map[string]string) ([]finding, error) {
	in, err := s.published(ctx, tx)
	if err != nil {
		return nil, err
	}
	states, err := loadStates(ctx, tx, s.cfg.Slot)
	if err != nil {
		return nil, err
	}
	var found []finding
	for _, t := range tables {
		f, err := factsOf(ctx, tx, t)
		if err != nil {
			return nil, err
		}
		found = append(found, judge(t, f, states[t.String()], in[t.String()], topicIDs[t.Topic]))
		delete(states, t.String())
		delete(in, t.String())
	}
	for name := range states {
		found = append(found, finding{gone: &name})
	}
	for _, p := range in {
		found = append(found, finding{Table: p.table, in: p, gone: new(p.table.String()), withhold: true})
	}
	return found, nil
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
		return "it was not published for a time: " + *before.Error, true
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

// publishedTable is a table of our publication.
type publishedTable struct {
	table    Table
	kind     string
	narrowed bool // not all of its changes are published
}

func (p *publishedTable) only() string { return only(p.table, p.kind) }

func (s *session) published(ctx context.Context, tx pgx.Tx) (map[string]*publishedTable, error) {
	// Filters and column lists came with version 15.
	rows, err := tx.Query(ctx, `SELECT n.nspname, c.relname, c.relkind::text,
			coalesce(to_jsonb(r)->>'prqual', to_jsonb(r)->>'prattrs') IS NOT NULL
			OR NOT (p.pubinsert AND p.pubupdate AND p.pubdelete AND p.pubtruncate AND p.pubviaroot)
		FROM pg_publication p JOIN pg_publication_rel r ON r.prpubid = p.oid
		JOIN pg_class c ON c.oid = r.prrelid JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE p.pubname = $1`, s.cfg.Publication)
	if err != nil {
		return nil, err
	}
	in := map[string]*publishedTable{}
	var p publishedTable
	_, err = pgx.ForEachRow(rows, []any{&p.table.Schema, &p.table.Name, &p.kind, &p.narrowed}, func() error {
		one := p
		in[p.table.String()] = &one
		return nil
	})
	return in, err
}

// apply brings publication and waybill.cdc_tables to what was found. That they
// change together is what makes a table complete: none is published for the
// first time without a snapshot being due.
func (s *session) apply(ctx context.Context, tx pgx.Tx, found []finding) error {
	for _, f := range found {
		if f.withhold {
			if err := exec(ctx, tx, `ALTER PUBLICATION `+s.publication()+` DROP TABLE `+f.in.only()); err != nil {
				return err
			}
		}
	}
	if slices.ContainsFunc(found, func(f finding) bool { return f.publish && f.withhold }) {
		if err := exec(ctx, tx, `ALTER PUBLICATION `+s.publication()+` SET (`+publicationOptions+`)`); err != nil {
			return err
		}
	}
	for i := range found {
		f := &found[i]
		if f.gone != nil {
			if err := exec(ctx, tx, `DELETE FROM waybill.cdc_tables WHERE slot = $1 AND name = $2`, s.cfg.Slot, *f.gone); err != nil {
				return err
			}
			continue
		}
		if f.publish {
			s.add(ctx, tx, f)
		}
		if err := keep(ctx, tx, s.cfg.Slot, f.state, f.reason, f.sweep); err != nil {
			return err
		}
	}
	return nil
}

// add puts a table into the publication. One that cannot be, since it is not
// ours or somebody holds its lock, keeps no other from it.
func (s *session) add(ctx context.Context, tx pgx.Tx, f *finding) {
	err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error { // a savepoint
		return exec(ctx, tx, `ALTER PUBLICATION `+s.publication()+` ADD TABLE `+only(f.Table, f.facts.kind))
	})
	if err != nil {
		f.suspend("it cannot be added to the publication: " + err.Error())
	}
}

func exec(ctx context.Context, tx pgx.Tx, sql string, args ...any) error {
	if _, err := tx.Exec(ctx, sql, args...); err != nil {
		return fmt.Errorf("%s: %w", sql, err)
	}
	return nil
}

// only leaves out tables that inherit from this one, which are tables of their
// own, and leaves partitions in.
func only(t Table, kind string) string {
	if kind == "r" {
		return "ONLY " + t.sql()
	}
	return t.sql()
}

// follow has reader and snapshotter go by what was found. A table about which
// nothing changed keeps its place in memory, and with it a snapshot under way.
func (s *session) follow(found []finding) {
	old := *s.watched.Load()
	now := map[string]*watched{}
	same := true
	suspended := 0
	for _, f := range found {
		if f.gone != nil {
			same = false
			continue
		}
		w := &watched{Table: f.Table, facts: f.facts, suspended: f.problem != "", tracker: &tracker{}}
		if w.suspended {
			suspended++
		}
		if b := old[f.String()]; b != nil {
			w.tracker = b.tracker
			if b.equal(w) {
				w = b
			}
		}
		if w != old[f.String()] {
			same = false
			s.warnOfUnknown(w)
		}
		now[f.String()] = w
	}
	s.metrics.suspended.Set(float64(suspended))
	if !same || len(now) != len(old) {
		s.watched.Store(&now)
	}
}

// warnOfUnknown tells of columns that are listed and are not there, which may be
// meant, or misspelt.
func (s *session) warnOfUnknown(w *watched) {
	if w.suspended {
		return
	}
	missing := slices.DeleteFunc(without(append([]string{w.TenantColumn}, w.Columns...), w.facts.columns), func(c string) bool {
		return c == "" || c == AllColumns
	})
	if len(missing) > 0 {
		s.log.Warn("columns are listed that the table has not", "table", w.String(), "columns", missing)
	}
}

func (w *watched) equal(o *watched) bool {
	if w.suspended != o.suspended || w.Topic != o.Topic || w.TenantColumn != o.TenantColumn || !slices.Equal(w.Columns, o.Columns) {
		return false
	}
	return w.suspended || w.facts.oid == o.facts.oid && slices.Equal(w.facts.key(), o.facts.key()) &&
		slices.Equal(w.facts.published(w.Table), o.facts.published(o.Table))
}

// declareTopics makes topics that are missing and gives the ids of all. One
// that differs from its declaration is told and left: an operator may have had
// reasons.
func (s *session) declareTopics(ctx context.Context, tables []Table) (map[string]string, error) {
	topics := Topics(s.cfg.Partitions, tables...)
	if len(topics) == 0 {
		return nil, nil
	}
	err := broker.Declare(ctx, s.client, s.cfg.Capabilities, topics...)
	var drift *broker.DriftError
	if errors.As(err, &drift) {
		if !s.drifted {
			s.log.WarnContext(ctx, "topics differ from their declaration", "error", err)
		}
		s.drifted, err = true, nil
	}
	if err != nil {
		return nil, fmt.Errorf("declare topics: %w", err)
	}
	names := make([]string, len(topics))
	for i, t := range topics {
		names[i] = t.Name
	}
	return s.topicIDs(ctx, names)
}

// topicIDs waits for topics that were made a moment ago: a broker of several
// nodes does not know them everywhere at once.
func (s *session) topicIDs(ctx context.Context, names []string) (map[string]string, error) {
	adm := kadm.NewClient(s.client)
	for tries := 0; ; tries++ {
		// Asking for rights makes kadm ask the broker and not its cache.
		there, err := adm.ListTopics(kadm.WithAuthorizedOps(ctx), names...)
		if err == nil {
			err = there.Error()
		}
		if err == nil {
			ids := map[string]string{}
			for _, t := range there {
				ids[t.Topic] = t.ID.String()
			}
			return ids, nil
		}
		if tries == 100 || ctx.Err() != nil {
			return nil, fmt.Errorf("look for topics: %w", err)
		}
		pause(ctx, 50*time.Millisecond)
	}
}

// readAgain asks for a snapshot of a table whose events do not tell all.
func (s *session) readAgain(ctx context.Context, name, why string) error {
	if _, err := request(ctx, s.db, s.cfg.Slot, name, why); err != nil {
		return err
	}
	s.tell(ctx, incidentAnew, name, name+" is read again: "+why, nil)
	s.wake()
	return nil
}
