package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
)

// ErrForgotten is an event that is read again, and so old that the inbox may
// have forgotten that it was handled.
var ErrForgotten = errors.New("it was read before and is older than the inbox remembers, so it may have been handled: " +
	"drop it if it was, or have it tried now if it was not")

// recently protects claims that were made a moment ago for an event of long
// ago: the position may not have passed it yet.
const recently = 24 * time.Hour

// pruneAtOnce bounds one statement on the default partition.
const pruneAtOnce = 10_000

// prune drops the inbox's days that no group needs any more, as tables, and
// what is as old in the default partition. Any member may do it, all at once.
func (s *session) prune(ctx context.Context, now time.Time) error {
	var longest time.Duration
	err := s.deps.Owner.QueryRow(ctx, `SELECT coalesce(max(inbox_keep), '0') FROM waybill.owner`).Scan(&longest)
	if err != nil {
		return fmt.Errorf("how long the inbox is kept: %w", err)
	}
	cutoff := daypart.Day(now.Add(-max(longest, s.cfg.InboxKeep)))
	// First of all: from now on nobody is sure of claims before it.
	s.cutoff.Store(cutoff.UnixMilli())
	parts, err := daypart.Parts(ctx, s.deps.Owner, inbox)
	if err != nil {
		return err
	}
	var errs []error
	for _, p := range parts {
		if p.Day.Before(cutoff) {
			errs = append(errs, s.dropDay(ctx, p))
		}
	}
	return errors.Join(append(errs, s.pruneDefault(ctx))...)
}

// dropDay drops a day unless something was handled of it lately, or somebody
// uses it: then the next round does.
func (s *session) dropDay(ctx context.Context, p daypart.Part) error {
	err := daypart.Empty(ctx, s.deps.Owner, []daypart.Table{p.Table}, func(ctx context.Context, tx pgx.Tx) error {
		var lately bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+pgx.Identifier{p.Schema, p.Name}.Sanitize()+
			` WHERE handled_at > now() - $1::interval)`, recently).Scan(&lately)
		if lately {
			return errLately
		}
		return err
	})
	if err == nil {
		err = daypart.Drop(ctx, s.deps.Owner, inbox, p)
	}
	if errors.Is(err, errLately) || errors.Is(err, daypart.ErrBusy) || errors.Is(err, daypart.ErrNotEmpty) || pg.Conflict(err) {
		return nil
	}
	return err
}

var errLately = errors.New("events of that day were handled lately")

// pruneDefault deletes claims that no day has a table for, by the time they
// were made: their events were old then already.
func (s *session) pruneDefault(ctx context.Context) error {
	for {
		tag, err := s.deps.Owner.Exec(ctx, `DELETE FROM waybill.inbox_default WHERE ctid = ANY(ARRAY(
			SELECT ctid FROM waybill.inbox_default WHERE handled_at < $1 LIMIT $2))`,
			time.UnixMilli(s.cutoff.Load()), pruneAtOnce)
		if err != nil {
			return fmt.Errorf("prune the inbox's default partition: %w", err)
		}
		if tag.RowsAffected() < pruneAtOnce {
			return nil
		}
	}
}

// forgotten tells an event of which it cannot be known whether it was handled:
// its position was passed once, and a claim on it may have been dropped. What
// was never read may be as old as it likes, and what comes from the parked
// table was not handled.
func (s *session) forgotten(p *partition, m *message) bool {
	return m.mark != nil && m.pos.Offset < p.reached && event.IDTime(m.env.ID).UnixMilli() < s.cutoff.Load()
}

// classForgotten is the class of ErrForgotten. It has no tries: nobody but a
// person can decide about it.
const classForgotten = "forgotten"
