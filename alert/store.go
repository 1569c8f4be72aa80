package alert

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/incident"
)

// load takes up the alerts that fired before this process began: they go on
// firing, and nobody is told of them again. Those of rules that are no more are
// resolved.
func (e *Engine) load(ctx context.Context) error {
	rows, err := e.deps.DB.Query(ctx, `SELECT rule, group_name, since, fired_at FROM waybill.alerts WHERE resolved_at IS NULL`)
	if err != nil {
		return fmt.Errorf("load alerts: %w", err)
	}
	var rule, group string
	var since, fired time.Time
	var gone [][2]string
	_, err = pgx.ForEachRow(rows, []any{&rule, &group, &since, &fired}, func() error {
		for _, w := range e.rules {
			if w.rule.Name == rule && w.rule.watches(group) {
				w.groups[group] = &standing{true_: since, fired: fired, seen: time.Now()}
				return nil
			}
		}
		gone = append(gone, [2]string{rule, group})
		return nil
	})
	if err != nil {
		return fmt.Errorf("load alerts: %w", err)
	}
	for _, g := range gone {
		if err := e.resolve(ctx, g[0], g[1], "the rule is no more"); err != nil {
			return err
		}
	}
	return e.forgetSinks(ctx)
}

// forgetSinks drops what is owed to sinks that are no longer configured.
func (e *Engine) forgetSinks(ctx context.Context) error {
	_, err := e.deps.DB.Exec(ctx, `DELETE FROM waybill.alert_notices WHERE NOT sink = ANY($1)`, e.sinkNames())
	if err != nil {
		return fmt.Errorf("forget sinks: %w", err)
	}
	return nil
}

func (e *Engine) sinkNames() (names []string) {
	for _, s := range e.sinks {
		names = append(names, s.Name())
	}
	return names
}

func (e *Engine) apply(ctx context.Context, w *watch, c change) error {
	var err error
	if c.firing {
		err = e.fire(ctx, &w.rule, c)
	} else {
		err = e.resolve(ctx, w.rule.Name, c.group, c.text)
	}
	if err != nil {
		w.undo(c)
	}
	return err
}

// undo lets the next evaluation find the change again that was not written.
func (w *watch) undo(c change) {
	s := w.groups[c.group]
	switch {
	case s == nil: // gone with its group: its alert is found at the next start
	case c.firing:
		s.fired = time.Time{}
	default:
		s.fired = c.since
	}
}

// fire writes the alert and what is owed of it. Where another process wrote it
// first, all is done already.
func (e *Engine) fire(ctx context.Context, r *Rule, c change) error {
	return pgx.BeginFunc(ctx, e.deps.DB, func(tx pgx.Tx) error {
		var fired time.Time
		err := tx.QueryRow(ctx, `INSERT INTO waybill.alerts AS a (rule, group_name, severity, text, since)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (rule, group_name) DO UPDATE SET severity = excluded.severity, text = excluded.text,
				since = excluded.since, fired_at = now(), resolved_at = NULL WHERE a.resolved_at IS NOT NULL
			RETURNING fired_at`, r.Name, c.group, r.Severity, c.text, c.since).Scan(&fired)
		if err == pgx.ErrNoRows { //nolint:errorlint // pgx gives it as it is
			return nil
		}
		if err != nil {
			return fmt.Errorf("write alert %s of %s: %w", r.Name, c.group, err)
		}
		_, err = tx.Exec(ctx, `INSERT INTO waybill.alert_notices (rule, group_name, sink, fired_at)
			SELECT $1, $2, unnest($3::text[]), $4
			ON CONFLICT (rule, group_name, sink) DO UPDATE SET fired_at = excluded.fired_at,
				heard = '', attempts = 0, next_at = now(), error = ''`, r.Name, c.group, e.sinkNames(), fired)
		if err != nil {
			return fmt.Errorf("write notices of %s: %w", r.Name, err)
		}
		return incident.Record(ctx, tx, incident.Incident{
			Part: "alert", Kind: r.Name, Subject: c.group, Text: c.text,
			Detail: map[string]any{"rule": r.Sentence, "severity": r.Severity, "since": c.since},
		})
	})
}

func (e *Engine) resolve(ctx context.Context, rule, group, text string) error {
	return pgx.BeginFunc(ctx, e.deps.DB, func(tx pgx.Tx) error {
		ended, err := tx.Exec(ctx, `UPDATE waybill.alerts SET resolved_at = now(), text = $3
			WHERE rule = $1 AND group_name = $2 AND resolved_at IS NULL`, rule, group, text)
		if err == nil && ended.RowsAffected() > 0 { // or another process saw it first
			_, err = tx.Exec(ctx, `UPDATE waybill.alert_notices SET attempts = 0, next_at = now()
				WHERE rule = $1 AND group_name = $2`, rule, group)
		}
		if err != nil {
			return fmt.Errorf("resolve alert %s of %s: %w", rule, group, err)
		}
		return nil
	})
}
