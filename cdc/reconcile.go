package cdc

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
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
		case f.incident != "" && f.known != "" && f.problem == "":
			s.note(ctx, f.incident, f.name(), f.name()+" "+f.text) // mended: good news
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

// readAgain asks for a snapshot of a table whose events do not tell all.
func (s *session) readAgain(ctx context.Context, name, why string) error {
	if _, err := request(ctx, s.db, s.cfg.Slot, name, why); err != nil {
		return err
	}
	s.tell(ctx, incidentAnew, name, name+" is read again: "+why, nil)
	s.wake()
	return nil
}
