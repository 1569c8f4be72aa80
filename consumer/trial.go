package consumer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
)

// trial is an attempt at events in one transaction.
type trial struct {
	ms   []*message
	of   []*partition // of each
	n    int          // of the first of them, as far as they are done with
	what []outcome    // of each
	bad  int          // which one brought the failure about; -1: not known
}

// apply claims the events, makes their effects and commits all of it. after is
// done in the same transaction, also if there is nothing new in it.
//
// It may stop before the last event, where the others take longer than they
// should or the partition is being given up: t.n says where.
func (s *session) apply(t *trial, after func(context.Context, pgx.Tx) error) error {
	defer s.meter.took(t.ms[0].route.typ, time.Now())
	s.meter.batch.Observe(float64(len(t.ms)))
	t.n, t.bad, t.what = len(t.ms), -1, make([]outcome, len(t.ms))
	parts := t.parts()
	ctx, cancel := within(parts, s.cfg.Timeout)
	defer cancel()
	conn, err := s.deps.DB.Acquire(ctx)
	if err != nil {
		return &outageError{err}
	}
	defer conn.Release()
	begun := time.Now()
	tx, claimed, lasts, err := s.claim(ctx, conn.Conn(), parts, t.ms)
	if err != nil {
		return err
	}
	if len(claimed) == 0 {
		t.seen(time.Since(begun))
	}
	fresh := make(map[uuid.UUID]bool, len(claimed))
	for _, id := range claimed {
		fresh[id] = true
	}
	numbers, err := s.count(ctx, tx, parts[0], t, fresh, lasts)
	if err == nil {
		err = s.effects(ctx, parts, tx, t, fresh)
	}
	if err == nil {
		err = numbers.save(ctx, tx, t.n)
	}
	if err == nil && after != nil {
		err = after(ctx, tx)
	}
	if err != nil || (len(claimed) == 0 && after == nil && !numbers.moved(t.n)) {
		// What fails here needs no telling: a connection that is not clean is
		// closed.
		_ = tx.Rollback(ctx)
		return err
	}
	if conn.Conn().PgConn().TxStatus() == 'I' {
		return fmt.Errorf("%w: it was ended by SQL", ErrNotYours)
	}
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	conn.Release() // telling may want one, and so may all workers at once
	numbers.tell(t.n)
	return nil
}

// seen notes that looking up the events took d, and that there was nothing else
// to do: a topic that is read again goes by at that pace, in full bundles.
func (t *trial) seen(d time.Duration) {
	for _, m := range t.ms {
		m.route.pace.add(d, len(t.ms))
	}
}

// parts are the partitions of the events, each once.
func (t *trial) parts() (out []*partition) {
	for _, p := range t.of {
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// within is the context of a transaction with events of all of parts: it ends
// when the handlers of one of them must give up.
func within(parts []*partition, timeout time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(parts[0].ctx, timeout)
	stops := []func() bool{}
	for _, p := range parts[1:] {
		stops = append(stops, context.AfterFunc(p.ctx, cancel))
	}
	return ctx, func() {
		for _, stop := range stops {
			stop()
		}
		cancel()
	}
}

// anyOver tells whether one of parts is given up: what has not begun then waits
// for a transaction without it.
func anyOver(parts []*partition) bool {
	return slices.ContainsFunc(parts, (*partition).over)
}

// effects has the handlers of the fresh events run.
func (s *session) effects(ctx context.Context, parts []*partition, tx pgx.Tx, t *trial, fresh map[uuid.UUID]bool) error {
	if t.ms[0].route.form == setForm {
		return s.effectsOfSet(ctx, tx, t, fresh)
	}
	start, tenant := time.Now(), ""
	err := safely(func() error {
		for i, m := range t.ms {
			if i > 0 && (time.Since(start) > shortTime || anyOver(parts)) {
				t.n = i
				return nil
			}
			if m.route.pass {
				t.what[i] = skipped
				continue
			}
			if t.what[i] = duplicate; !fresh[m.env.ID] {
				continue
			}
			delete(fresh, m.env.ID) // should it come twice
			t.bad, t.what[i] = i, done
			if s.forgotten(t.of[i], m) {
				return ErrForgotten
			}
			if i > 0 && tenant != m.env.Tenant && s.policies.Load() {
				if err := forgetTenant(ctx, tx); err != nil {
					return err
				}
			}
			tenant = m.env.Tenant
			if err := m.effect(ctx, tx); err != nil {
				return err
			}
			t.bad = -1
		}
		return nil
	})
	if err == nil {
		err = giveBack(ctx, tx, s.cfg.Group, t.ms[t.n:], fresh)
	}
	return err
}

// effect has the message's handler run. An error that it swallowed fails the
// event here rather than one that shares its transaction.
func (m *message) effect(ctx context.Context, tx pgx.Tx) error {
	begun := time.Now()
	err := m.route.handle(event.WithCause(ctx, &m.env), handlerTx{tx}, []*message{m})
	m.route.pace.add(time.Since(begun), 1)
	switch status := tx.Conn().PgConn().TxStatus(); {
	case err != nil:
		return err
	case status == 'E':
		return errors.New("a statement of the handler failed, and the handler returned no error: its transaction cannot commit")
	case status == 'I':
		return fmt.Errorf("%w: it was ended by SQL", ErrNotYours)
	}
	return nil
}

// effectsOfSet has the handler of a set have all that is fresh. It acts for no
// tenant and has no cause: its events differ in both.
func (s *session) effectsOfSet(ctx context.Context, tx pgx.Tx, t *trial, fresh map[uuid.UUID]bool) error {
	var set []*message
	for i, m := range t.ms {
		if m.route.pass {
			t.what[i] = skipped
			continue
		}
		if t.what[i] = duplicate; fresh[m.env.ID] {
			delete(fresh, m.env.ID)
			t.what[i] = done
			if s.forgotten(t.of[i], m) {
				t.bad = i
				return ErrForgotten
			}
			set = append(set, m)
		}
	}
	if len(set) == 0 {
		return nil
	}
	begun := time.Now()
	err := safely(func() error { return set[0].route.handle(ctx, handlerTx{tx}, set) })
	set[0].route.pace.add(time.Since(begun), len(set))
	return err
}

// forgetTenant ends what the event before acted for: a handler that names no
// tenant must not act for that of another event.
func forgetTenant(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `SELECT set_config($1, '', true)`, pg.TenantSetting); err != nil {
		return fmt.Errorf("forget the tenant of the event before: %w", err)
	}
	return nil
}

// giveBack undoes the claims of events that were not handled after all.
func giveBack(ctx context.Context, tx pgx.Tx, group string, rest []*message, fresh map[uuid.UUID]bool) error {
	var ids []uuid.UUID
	for _, m := range rest {
		if fresh[m.env.ID] {
			ids = append(ids, m.env.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	if _, err := tx.Exec(ctx, `DELETE FROM waybill.inbox WHERE group_name = $1 AND event_id = ANY($2)`, group, ids); err != nil {
		return fmt.Errorf("give claims back: %w", err)
	}
	return nil
}
