package consumer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/pg"
)

// outageError is a failure that cannot be an event's fault, whatever it says.
type outageError struct{ err error }

func (e *outageError) Error() string { return e.err.Error() }
func (e *outageError) Unwrap() error { return e.err }

// attempt handles m once, holding on while infrastructure is missing. after
// is done in the same transaction, also if the event turns out a duplicate.
//
// A positive wait asks for another attempt later; err is then nil. An error is
// the event's, or errOver.
func (s *session) attempt(l *lane, m *message, after func(context.Context, pgx.Tx) error) (what outcome, wait time.Duration, err error) {
	if err := safely(func() error { return s.decode(l.p.ctx, m) }); err != nil {
		if s.isOutage(err) {
			return "", s.unknown(l, err), nil
		}
		return "", 0, err
	}
	if m.route.form == directForm {
		what, err = done, s.direct(l.p, m, after)
	} else {
		t := &trial{ms: []*message{m}, of: []*partition{l.p}}
		err = s.apply(t, after)
		what = t.what[0]
	}
	if err == nil {
		s.restored()
		return what, 0, nil
	}
	if m.route.form == preparedForm {
		m.body = nil // what was prepared may have been wrong, or may be by then
	}
	wait, err = s.blame(l, err)
	return "", wait, err
}

// looksAtMost is how often in a row an event may lose its connection while the
// database answers. It is then taken for what it is: an event that kills its
// connections, or needs a server of its own.
const looksAtMost = 12

// blame says whose fault a failed attempt was. If the database is out of
// reach it returns when that is over, and keeps the worker: no other lane could
// do better. Otherwise the lane waits aside.
func (s *session) blame(l *lane, failure error) (wait time.Duration, err error) {
	switch {
	case errors.Is(failure, errFenced):
		s.cede(l.p)
		return 0, errOver
	case l.p.over():
		return 0, errOver
	case pg.Conflict(failure):
		return s.conflict(l, failure)
	case !s.isOutage(failure):
		return 0, failure
	}
	s.outage(failure)
	if s.reach(l.p.ctx) != nil {
		if err := s.persist(l.p, s.reach); err != nil {
			return 0, err
		}
		return time.Millisecond, nil
	}
	l.waits++
	if lostConnection(failure) {
		l.cuts++
	}
	if l.cuts > looksAtMost {
		return 0, failure
	}
	return backoff(outagePause, outageMax, l.waits-1), nil
}

// conflict has an event tried again that met another transaction in the same
// rows: that is no fault of it, unless it goes on and on.
func (s *session) conflict(l *lane, failure error) (wait time.Duration, err error) {
	s.contended()
	l.waits++
	if l.cuts++; l.cuts > looksAtMost {
		return 0, failure
	}
	return backoff(conflictPause, outageMax, l.waits-1), nil
}

// lostConnection tells a failure that an event can bring about although it
// looks like an outage. What the database says it lacks, such as room or being
// the primary, what failed before the handler, and what the configuration calls
// infrastructure are none.
func lostConnection(failure error) bool {
	var before *outageError
	var server *pgconn.PgError
	switch {
	case errors.As(failure, &before), !pg.Infrastructure(failure):
		return false
	case errors.As(failure, &server):
		return strings.HasPrefix(server.Code, "57P") || strings.HasPrefix(server.Code, "08")
	}
	return true
}

// reach tells whether the database answers.
func (s *session) reach(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, flushWithin)
	defer cancel()
	if _, err := s.deps.DB.Exec(ctx, `SELECT`); err != nil {
		return fmt.Errorf("reach the database: %w", err)
	}
	return nil
}

// isOutage tells a failure that is no fault of the event. A full outbox is none
// either: what the handler wants to tell will fit when the relay has caught up.
func (s *session) isOutage(err error) bool {
	var outage *outageError
	return errors.As(err, &outage) || errors.Is(err, outbox.ErrOverloaded) || s.cfg.Infrastructure(err)
}

// persist runs f until it succeeds: what is wrong with it is never a reason to
// lose an event. When the partition is given up meanwhile it returns errOver;
// nothing that f wrote then has been committed, or it will be recognised.
func (s *session) persist(p *partition, f func(context.Context) error) error {
	for n := 0; ; n++ {
		err := f(p.ctx)
		if err == nil {
			s.restored()
			return nil
		}
		if errors.Is(err, errFenced) {
			s.cede(p)
		}
		if p.over() {
			return errOver
		}
		s.outage(err)
		if !pause(p.stop, backoff(outagePause, outageMax, n)) {
			return errOver
		}
	}
}

// outage tells once that the group waits, restored that it goes on.
func (s *session) outage(err error) {
	s.meter.outages.Inc()
	if s.down.CompareAndSwap(false, true) {
		s.log.Warn("waiting for infrastructure", "error", err)
	}
}

func (s *session) restored() {
	if s.down.Load() && s.down.CompareAndSwap(true, false) {
		s.log.Info("infrastructure is back")
	}
}
