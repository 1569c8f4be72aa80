package saga

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Ref names an instance.
type Ref struct {
	Tenant string `json:"tenant"`
	Saga   string `json:"saga"`
	Key    string `json:"key"`
	Round  int    `json:"round"`
}

func (r Ref) String() string { return fmt.Sprintf("%s/%s/%d", r.Saga, r.Key, r.Round) }

func (r Ref) args() []any { return []any{r.Tenant, r.Saga, r.Key, r.Round} }

// ErrNotFound is an instance that is not there: it never was, it was pruned, or
// it is another tenant's.
var ErrNotFound = errors.New("there is no such saga")

const ofInstance = ` WHERE tenant = $1::text AND saga = $2::text AND key = $3::text AND round = $4::integer`

const (
	lockInstance  = `SELECT state FROM saga.instances` + ofInstance + ` FOR UPDATE`
	selectEntries = `SELECT ` + entryColumns + ` FROM saga.entries` + ofInstance + ` ORDER BY seen_at, id, what, step`
)

// lock takes an instance's row, so that nobody else judges it until tx ends. It
// tells the time by the database, from after the lock was got.
func lock(ctx context.Context, tx pgx.Tx, r Ref) (was State, now time.Time, err error) {
	err = tx.QueryRow(ctx, lockInstance, r.args()...).Scan(&was)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", now, ErrNotFound
	}
	if err == nil {
		err = tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
	}
	return was, now, err
}

const entryColumns = `id, what, step, direction, seen_at, type, source, time, causation_id, correlation_id, asked, due_at, by, reason, told_as`

// readEntries reads an instance's record in the order in which it came about.
func readEntries(ctx context.Context, tx pgx.Tx, r Ref) ([]Entry, error) {
	rows, err := tx.Query(ctx, selectEntries, r.args()...)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, scanEntry)
}

func scanEntry(row pgx.CollectableRow) (e Entry, err error) {
	err = row.Scan(&e.ID, &e.What, &e.Step, &e.Direction, &e.SeenAt, &e.Type, &e.Source, &e.Time,
		&e.CausationID, &e.CorrelationID, &e.Asked, &e.DueAt, &e.By, &e.Reason, &e.ToldAs)
	e.Time, e.SeenAt = e.Time.UTC(), e.SeenAt.UTC()
	return e, err
}

// note adds a line that is no event.
func note(ctx context.Context, tx pgx.Tx, r Ref, e Entry) error {
	_, err := tx.Exec(ctx, `INSERT INTO saga.entries (tenant, saga, key, round, id, what, step, direction, time, seen_at, asked, due_at, by, reason, unpublished)
		VALUES ($1, $2, $3, $4, $5, $6::text, $7, $8, $9::timestamptz, $9::timestamptz, $10, $11, $12, $13, $6::text = 'skipped')`,
		append(r.args(), e.ID, e.What, e.Step, e.Direction, e.SeenAt, e.Asked, e.DueAt, e.By, e.Reason)...)
	return err
}

// settle writes down where an instance stands. What is yet to be published has
// it looked at at once.
func settle(ctx context.Context, tx pgx.Tx, r Ref, s standing, now time.Time) error {
	_, err := tx.Exec(ctx, `UPDATE saga.instances SET state = $5, step = $6, direction = $7, asked = $8, since = $9, due_at = $10::timestamptz,
			wake_at = CASE WHEN EXISTS (SELECT FROM saga.entries`+ofInstance+` AND unpublished) THEN $13::timestamptz ELSE $10::timestamptz END,
			started_at = $11, ended_at = $12, updated_at = $13::timestamptz`+ofInstance,
		append(r.args(), s.State, s.Step, s.Direction, s.Asked, orNow(s.Since, now), orNull(s.Due), orNow(s.Started, now), orNull(s.Ended), now)...)
	return err
}

func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func orNow(t, now time.Time) time.Time {
	if t.IsZero() {
		return now
	}
	return t
}

// savePlan keeps p for operators' tools.
func savePlan(ctx context.Context, db execer, p plan) error {
	text, err := json.Marshal(p)
	if err == nil {
		_, err = db.Exec(ctx, `INSERT INTO saga.plans (name, plan) VALUES ($1, $2)
			ON CONFLICT (name) DO UPDATE SET plan = excluded.plan, updated_at = now() WHERE plans.plan <> excluded.plan`, p.Name, text)
	}
	if err != nil {
		return fmt.Errorf("keep the plan of saga %s: %w", p.Name, err)
	}
	return nil
}

func loadPlan(ctx context.Context, tx pgx.Tx, name string) (p plan, err error) {
	err = tx.QueryRow(ctx, `SELECT plan FROM saga.plans WHERE name = $1`, name).Scan(&p)
	if errors.Is(err, pgx.ErrNoRows) {
		return p, fmt.Errorf("%w: no process that runs now or ran before declares a saga %s", ErrNotFound, name)
	}
	return p, err
}
