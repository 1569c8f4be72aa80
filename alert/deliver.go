package alert

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// Notice is what a sink is told of an alert.
type Notice struct {
	Rule     string
	Group    string
	Severity string
	Text     string
	Since    time.Time // when its condition began
	FiredAt  time.Time
	EndedAt  time.Time // zero: it fires
}

// Firing tells whether it is a beginning, or a reminder of one that goes on.
func (n *Notice) Firing() bool { return n.EndedAt.IsZero() }

// Sink tells somebody. Send returns when they have taken it.
type Sink interface {
	Name() string
	Send(ctx context.Context, n Notice) error
	// Repeat is how often it wants to hear that an alert still fires; 0: once.
	Repeat() time.Duration
}

// Bounds of delivery.
const (
	sendWithin = 15 * time.Second
	retryFirst = 2 * time.Second
	retryMost  = 10 * time.Minute
	giveUp     = 24 * time.Hour
)

// deliver tells every sink what it is owed, each at its own pace, until ctx
// ends.
func (e *Engine) deliver(ctx context.Context) {
	var all sync.WaitGroup
	for _, s := range e.sinks {
		all.Go(func() {
			tick := time.NewTicker(e.cfg.Look)
			defer tick.Stop()
			said := ""
			for {
				said = e.tell(ctx, said, e.drain(ctx, s))
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	all.Wait()
}

// drain tells a sink all that is due.
func (e *Engine) drain(ctx context.Context, s Sink) error {
	for ctx.Err() == nil {
		more, err := e.next(ctx, s)
		if err != nil || !more {
			return err
		}
	}
	return nil
}

// errNothing says that nothing is due.
var errNothing = errors.New("nothing is due")

// next tells a sink of one alert. It is claimed for as long as telling may
// take, so that another process does not tell it too; the claim is a time and
// not a lock, so that a slow receiver holds no transaction open.
func (e *Engine) next(ctx context.Context, s Sink) (more bool, err error) {
	n, heard, attempts, err := e.claim(ctx, s)
	if errors.Is(err, errNothing) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for notices: %w", err)
	}
	if !n.Firing() && heard == "" {
		return true, e.settle(ctx, s, n) // it ended before anybody was told that it began
	}
	sending, cancel := context.WithTimeout(ctx, sendWithin)
	err = s.Send(sending, n)
	cancel()
	if err != nil {
		return true, e.later(ctx, s, n, attempts, err)
	}
	return true, e.settle(ctx, s, n)
}

func (e *Engine) claim(ctx context.Context, s Sink) (n Notice, heard string, attempts int, err error) {
	var ended *time.Time
	err = e.deps.DB.QueryRow(ctx, `WITH due AS (
			SELECT rule, group_name, sink FROM waybill.alert_notices
			WHERE sink = $1 AND next_at <= now() AND claimed_until <= now()
			ORDER BY next_at LIMIT 1 FOR UPDATE SKIP LOCKED)
		UPDATE waybill.alert_notices o SET claimed_until = now() + $2::interval, attempts = o.attempts + 1
		FROM due JOIN waybill.alerts a USING (rule, group_name)
		WHERE o.rule = due.rule AND o.group_name = due.group_name AND o.sink = due.sink
		RETURNING a.rule, a.group_name, a.severity, a.text, a.since, a.fired_at, a.resolved_at, o.heard, o.attempts`,
		s.Name(), 2*sendWithin).Scan(&n.Rule, &n.Group, &n.Severity, &n.Text, &n.Since, &n.FiredAt, &ended, &heard, &attempts)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errNothing
	}
	if ended != nil {
		n.EndedAt = *ended
	}
	return n, heard, attempts, err
}

// settle notes that a sink has heard. An alert that all have heard the end of
// goes.
func (e *Engine) settle(ctx context.Context, s Sink, n Notice) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // it was told: that must not be lost
	defer cancel()
	if n.Firing() {
		next := "infinity"
		if r := s.Repeat(); r > 0 {
			next = time.Now().Add(r).Format(time.RFC3339Nano)
		}
		// Unless it has ended or begun anew meanwhile, of which it is still to hear.
		_, err := e.deps.DB.Exec(ctx, `UPDATE waybill.alert_notices o SET heard = 'firing', attempts = 0, error = '', claimed_until = '-infinity',
				next_at = CASE WHEN a.resolved_at IS NULL THEN $4::timestamptz ELSE now() END
			FROM waybill.alerts a WHERE a.rule = o.rule AND a.group_name = o.group_name
				AND o.rule = $1 AND o.group_name = $2 AND o.sink = $3 AND o.fired_at = $5`,
			n.Rule, n.Group, s.Name(), next, n.FiredAt)
		return wrap("note what was told", err)
	}
	return wrap("note what was told", pgx.BeginFunc(ctx, e.deps.DB, func(tx pgx.Tx) error {
		// The alert's row first, so that two sinks do not each leave it to the other.
		var ended *time.Time
		err := tx.QueryRow(ctx, `SELECT resolved_at FROM waybill.alerts
			WHERE rule = $1 AND group_name = $2 AND fired_at = $3 FOR UPDATE`, n.Rule, n.Group, n.FiredAt).Scan(&ended)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && ended == nil {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `UPDATE waybill.alert_notices SET heard = 'resolved', next_at = 'infinity', claimed_until = '-infinity'
			WHERE rule = $1 AND group_name = $2 AND sink = $3`, n.Rule, n.Group, s.Name()); err != nil {
			return err
		}
		_, err = tx.Exec(ctx, `DELETE FROM waybill.alerts a WHERE rule = $1 AND group_name = $2 AND NOT EXISTS (
			SELECT FROM waybill.alert_notices o WHERE o.rule = a.rule AND o.group_name = a.group_name AND heard <> 'resolved')`,
			n.Rule, n.Group)
		return err
	}))
}

// later leaves a notice for another time. After a day it is given up: who was
// away so long has been told otherwise.
func (e *Engine) later(ctx context.Context, s Sink, n Notice, attempts int, cause error) error {
	began := n.FiredAt
	if !n.Firing() {
		began = n.EndedAt
	}
	e.log.WarnContext(ctx, "alert not delivered", "sink", s.Name(), "rule", n.Rule, "group", n.Group, "attempts", attempts, "error", cause)
	if time.Since(began) > giveUp {
		return e.settle(ctx, s, n)
	}
	pause := min(retryFirst<<min(attempts, 10), retryMost)
	pause = pause/2 + rand.N(pause/2) //nolint:gosec // jitter
	_, err := e.deps.DB.Exec(ctx, `UPDATE waybill.alert_notices SET next_at = now() + $4::interval, error = $5, claimed_until = '-infinity'
		WHERE rule = $1 AND group_name = $2 AND sink = $3`, n.Rule, n.Group, s.Name(), pause, cut(cause.Error(), 512))
	return wrap("leave a notice for later", err)
}

func wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", what, err)
}
