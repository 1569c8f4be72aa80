package saga

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
)

// maxEvents bounds the events kept of an instance. One that says what another
// said before is counted past it, and one that says something new is kept: a
// plan has few things to say.
const maxEvents = 200

// record writes down what an event means, in the transaction that marks it as
// handled.
func (o *Observer) record(ctx context.Context, tx pgx.Tx, env *event.Envelope, e any) error {
	all, err := o.sightings(ctx, tx, env, e)
	if err != nil {
		return fmt.Errorf("find the sagas of %s: %w", env.Subject, err)
	}
	if len(all) > 0 && (env.Tenant == "" || env.Subject == "") {
		return fmt.Errorf("%w: an event of a saga needs a tenant and a subject", ErrInvalid)
	}
	for _, s := range all {
		if err := o.enter(ctx, tx, env, s); err != nil {
			return fmt.Errorf("record event in saga %s: %w", s.Ref, err)
		}
	}
	return nil
}

// enter adds the event to one instance and judges it anew.
func (o *Observer) enter(ctx context.Context, tx pgx.Tx, env *event.Envelope, s sighting) error {
	w, err := write(ctx, tx, env, s)
	if err != nil {
		return err
	}
	st := judge(s.plan, w.entries)
	if err := settle(ctx, tx, s.Ref, st, w.now); err != nil {
		return err
	}
	o.meter.moved(s.Saga, w.fresh, w.was, st.State)
	return nil
}

// written is an instance that an event was added to, its row locked.
type written struct {
	fresh   bool // it was not there before
	was     State
	now     time.Time
	entries []Entry
}

// write makes the instance if it is not there, and the event's entries, and
// reads the record, in one round trip.
func write(ctx context.Context, tx pgx.Tx, env *event.Envelope, s sighting) (w written, err error) {
	var b pgx.Batch
	b.Queue(actFor, pg.TenantSetting, s.Tenant)
	b.Queue(hold, s.Tenant, s.Saga, s.Key)
	b.Queue(`INSERT INTO saga.instances (tenant, saga, key, round, id, state, step, direction, asked, since, started_at, updated_at, correlation_id)
		VALUES ($1, $2, $3, $4, $5, 'running', '', 'forward', 0, clock_timestamp(), $6, clock_timestamp(), $7)
		ON CONFLICT DO NOTHING`, append(s.args(), event.NewID(), env.Time, correlation(env))...).Exec(func(tag pgconn.CommandTag) error {
		w.fresh = tag.RowsAffected() == 1
		return nil
	})
	b.Queue(inherit, s.args()...)
	for _, m := range s.marks {
		b.Queue(insertEvent, append(s.args(), env.ID, m.what, m.step, env.Type, env.Source, env.Time,
			env.CausationID, env.CorrelationID, env.TraceParent, s.every, maxEvents)...)
	}
	b.Queue(lockInstance, s.args()...).QueryRow(func(row pgx.Row) error { return row.Scan(&w.was) })
	b.Queue(`SELECT clock_timestamp()`).QueryRow(func(row pgx.Row) error { return row.Scan(&w.now) })
	b.Queue(selectEntries, s.args()...).Query(func(rows pgx.Rows) error {
		w.entries, err = pgx.CollectRows(rows, scanEntry)
		return err
	})
	return w, tx.SendBatch(ctx, &b).Close()
}

// inherit gives an instance what concerns every round of its key.
const inherit = `INSERT INTO saga.entries (tenant, saga, key, round, id, what, step, type, source, time, seen_at,
		causation_id, correlation_id, trace_parent, every_round)
	SELECT tenant, saga, key, $4::integer, id, what, step, type, source, time, min(seen_at), causation_id, correlation_id, trace_parent, true
	FROM saga.entries WHERE tenant = $1 AND saga = $2 AND key = $3 AND round <> $4::integer AND every_round
	GROUP BY tenant, saga, key, id, what, step, type, source, time, causation_id, correlation_id, trace_parent
	ON CONFLICT DO NOTHING`

const insertEvent = `WITH kept AS (
		SELECT count(*) AS n, coalesce(bool_or(what = $6::text AND step = $7::text), false) AS known
		FROM saga.entries` + ofInstance + `),
	added AS (
		INSERT INTO saga.entries (tenant, saga, key, round, id, what, step, type, source, time, seen_at,
			causation_id, correlation_id, trace_parent, every_round)
		SELECT $1, $2, $3, $4, $5::uuid, $6::text, $7::text, $8::text, $9::text, $10::timestamptz, clock_timestamp(), $11::text, $12::text, $13::text, $14::boolean
		FROM kept WHERE n < $15::bigint OR NOT known
		ON CONFLICT DO NOTHING)
	UPDATE saga.instances SET left_out = left_out + 1` + ofInstance + `
		AND EXISTS (SELECT FROM kept WHERE n >= $15::bigint AND known)`

func correlation(env *event.Envelope) string {
	if env.CorrelationID != "" {
		return env.CorrelationID
	}
	return env.ID.String()
}
