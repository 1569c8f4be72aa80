package saga

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// watch has what is overdue asked for, until ctx ends. A failure is logged and
// tried again.
func (o *Observer) watch(ctx context.Context) error {
	cl, err := o.deps.Client()
	if err != nil {
		return fmt.Errorf("saga deadlines: make client: %w", err)
	}
	defer cl.Close()
	b := &barrier{cl: cl, db: o.deps.DB, group: o.cfg.Group, topics: o.topics(), standstill: o.cfg.Standstill, log: o.log, movedAt: time.Now()}
	failing := false
	t := time.NewTicker(o.cfg.Every)
	defer t.Stop()
	for {
		err := o.look(ctx, b)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil && !failing {
			o.log.ErrorContext(ctx, "look for overdue steps, trying again", "error", err, "in", o.cfg.Every)
		}
		failing = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
	}
}

// lookWithin bounds one look.
const lookWithin = 30 * time.Second

// look acts on what is due, once the group has read what there was when it
// became so: an event that says otherwise may be on its way.
func (o *Observer) look(ctx context.Context, b *barrier) error {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	if !b.raised() {
		now, some, err := o.anyDue(ctx)
		if err != nil || !some {
			return err
		}
		if err := b.raise(ctx, now); err != nil {
			return err
		}
	}
	reached, err := b.reached(ctx)
	if err != nil || !reached {
		return err
	}
	var errs []error
	for range maxAtOnce {
		some, err := o.actOnNext(ctx, b.at)
		errs = append(errs, err)
		if !some || ctx.Err() != nil || len(errs) > maxFailures {
			break
		}
	}
	b.lower()
	return errors.Join(errs...)
}

// Bounds of one look. What fails is put off, so that it does not stop the rest.
const (
	maxAtOnce   = 1000
	maxFailures = 10
	putOff      = "10 seconds"
)

func (o *Observer) names() []string { return slices.Sorted(maps.Keys(o.plans)) }

func (o *Observer) anyDue(ctx context.Context) (now time.Time, some bool, err error) {
	err = within(ctx, o.deps.DB, "", func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, `SELECT now, EXISTS (SELECT FROM saga.instances WHERE wake_at <= now AND saga = ANY ($1))
			FROM clock_timestamp() now`, o.names()).Scan(&now, &some)
	})
	if err != nil {
		return now, false, fmt.Errorf("look for what is due: %w", err)
	}
	return now, some, nil
}

// actOnNext acts on the instance that has been due for longest, and that nobody
// else is at. some tells whether there was one.
func (o *Observer) actOnNext(ctx context.Context, at time.Time) (some bool, err error) {
	var r Ref
	var told []func()
	err = within(ctx, o.deps.DB, "", func(tx pgx.Tx) error {
		var was State
		err := tx.QueryRow(ctx, `SELECT tenant, saga, key, round, state FROM saga.instances
			WHERE wake_at <= $1 AND saga = ANY ($2) ORDER BY wake_at LIMIT 1 FOR UPDATE SKIP LOCKED`, at, o.names()).
			Scan(&r.Tenant, &r.Saga, &r.Key, &r.Round, &was)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err != nil {
			return err
		}
		some = true
		told, err = o.act(ctx, tx, r, was, at)
		return err
	})
	if err != nil {
		err = fmt.Errorf("overdue step of saga %s: %w", r, err)
		if some {
			err = errors.Join(err, o.delay(ctx, r))
		}
		return some, err
	}
	for _, tell := range told {
		tell()
	}
	return some, nil
}

// delay puts an instance off that could not be acted on.
func (o *Observer) delay(ctx context.Context, r Ref) error {
	return within(ctx, o.deps.DB, r.Tenant, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE saga.instances SET wake_at = clock_timestamp() + interval '`+putOff+`'`+ofInstance, r.args()...)
		return err
	})
}
