package webhook

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
)

const (
	keepEvery = 10 * time.Minute
	pruneMost = 10_000 // rows of one statement
)

func (s *Sender) keeps(ctx context.Context) {
	s.every(ctx, keepEvery, "the days of the webhook log are not kept", func(ctx context.Context) error {
		return errors.Join(EnsureDays(ctx, s.store.db), s.store.prune(ctx, time.Now().Add(-s.cfg.Keep)))
	})
}

// prune drops the days before a moment, as tables, and what is as old in the
// default partitions. A day of which something is to be sent again stays.
func (s *Store) prune(ctx context.Context, before time.Time) error {
	days := map[time.Time][]daypart.Table{}
	parts := map[daypart.Table]daypart.Part{}
	of := map[daypart.Table]daypart.Table{}
	for _, t := range []daypart.Table{messages, deliveries} {
		all, err := daypart.Parts(ctx, s.db, t)
		if err != nil {
			return err
		}
		for _, p := range all {
			if p.Day.AddDate(0, 0, 1).Before(before) {
				days[p.Day] = append(days[p.Day], p.Table)
				parts[p.Table], of[p.Table] = p, t
			}
		}
	}
	var errs []error
	for _, day := range days {
		errs = append(errs, s.dropDay(ctx, day, parts, of))
	}
	for _, t := range []string{"messages_default", "deliveries_default"} {
		errs = append(errs, s.pruneDefault(ctx, t, before))
	}
	return errors.Join(errs...)
}

var errAwaited = errors.New("something of that day is to be sent")

// dropDay takes a day out of both tables at once: an event and its log go
// together.
func (s *Store) dropDay(ctx context.Context, day []daypart.Table, parts map[daypart.Table]daypart.Part, of map[daypart.Table]daypart.Table) error {
	db, p := operatorDB{s.db}, parts[day[0]]
	err := daypart.Empty(ctx, db, day, func(ctx context.Context, tx pgx.Tx) error {
		var awaited bool
		if err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM webhook.due WHERE event_id >= $1 AND event_id < $2)`, p.Floor(), p.Ceiling()).Scan(&awaited); err != nil {
			return err
		}
		if awaited {
			return errAwaited
		}
		return nil
	})
	for _, t := range day {
		if err == nil {
			err = daypart.Drop(ctx, db, of[t], parts[t])
		}
	}
	if errors.Is(err, errAwaited) || errors.Is(err, daypart.ErrBusy) || errors.Is(err, daypart.ErrNotEmpty) || pg.Conflict(err) {
		return nil // the next round does it
	}
	return err
}

func (s *Store) pruneDefault(ctx context.Context, table string, before time.Time) error {
	name := pgx.Identifier{"webhook", table}.Sanitize()
	for n := int64(pruneMost); n == pruneMost; {
		err := asOperator(ctx, s.db, func(tx pgx.Tx) error {
			tag, err := tx.Exec(ctx, `DELETE FROM `+name+` WHERE ctid = ANY (ARRAY(SELECT ctid FROM `+name+` d WHERE stored_at < $1
				AND NOT EXISTS (SELECT FROM webhook.due u WHERE u.tenant = d.tenant AND u.event_id = d.event_id) LIMIT $2))`, before, pruneMost)
			n = tag.RowsAffected()
			return err
		})
		if err != nil {
			return fmt.Errorf("prune webhook.%s: %w", table, err)
		}
	}
	return nil
}
