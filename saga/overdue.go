package saga

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/saga/contracts"
)

// act does what is due of an instance whose row is locked: it publishes what an
// operator did, and asks for the step that is overdue, or gives it up. told is
// to be called once that is committed.
func (o *Observer) act(ctx context.Context, tx pgx.Tx, r Ref, was State, at time.Time) (told []func(), err error) {
	var now time.Time
	if err := tx.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return nil, err
	}
	entries, err := readEntries(ctx, tx, r)
	if err != nil {
		return nil, err
	}
	if err := o.publishSkips(ctx, tx, r, entries); err != nil {
		return nil, err
	}
	p := o.plans[r.Saga]
	st := judge(p, entries)
	if !st.Due.IsZero() && !st.Due.After(at) {
		e := Entry{ID: event.NewID(), What: Asked, Step: st.Step, Direction: st.Direction, SeenAt: now, Asked: st.Asked + 1, DueAt: &st.Due}
		if st.Asked < p.Steps[p.step(st.Step)].Asks {
			told, err = o.ask(ctx, tx, r, entries, e)
		} else {
			e.What, e.Asked = GaveUp, st.Asked
			told, err = o.giveUp(ctx, tx, r, e)
		}
		if err == nil {
			err = note(ctx, tx, r, e)
		}
		if err != nil {
			return nil, err
		}
		st = judge(p, append(entries, e))
	}
	if err := settle(ctx, tx, r, st, now); err != nil {
		return nil, err
	}
	return append(told, func() { o.meter.moved(r.Saga, false, was, st.State) }), nil
}

func (o *Observer) ask(ctx context.Context, tx pgx.Tx, r Ref, entries []Entry, e Entry) ([]func(), error) {
	ctx, err := causedBy(ctx, tx, r, entries)
	if err != nil {
		return nil, err
	}
	err = o.deps.Outbox.Add(ctx, tx, contracts.StepOverdue{
		Key: r.Key, Saga: r.Saga, Round: int32(r.Round), Step: e.Step, Direction: direction(e.Direction), Asked: int32(e.Asked), DueAt: *e.DueAt,
	})
	if err != nil {
		return nil, err
	}
	return []func(){func() {
		o.meter.overdue.WithLabelValues(r.Saga, e.Step, string(e.Direction)).Inc()
		o.log.WarnContext(ctx, "step of a saga is overdue and was asked for", "saga", r.Saga, "key", r.Key, "round", r.Round, "tenant", r.Tenant,
			"step", e.Step, "direction", string(e.Direction), "asked", e.Asked, "due", *e.DueAt)
	}}, nil
}

// giveUp tells an operator. The incident is one for a step of a saga, not for an
// instance: what fails, fails by the hundred.
func (o *Observer) giveUp(ctx context.Context, tx pgx.Tx, r Ref, e Entry) ([]func(), error) {
	err := incident.Record(ctx, tx, incident.Incident{
		Part: "saga", Kind: "operator needed", Subject: r.Saga + " " + e.Step,
		Text: fmt.Sprintf("Step %s of saga %s was to be %s, was asked for %d times, and was not; last that of key %s. "+
			"See waybill saga ls --state needs_operator --saga %s, mend the service, then waybill saga resume, or see to it by hand and say so with waybill saga skip.",
			e.Step, r.Saga, participle(e.Direction), e.Asked, r.Key, r.Saga),
		Detail: map[string]any{"tenant": r.Tenant, "saga": r.Saga, "key": r.Key, "round": r.Round, "step": e.Step, "direction": e.Direction, "asked": e.Asked},
	})
	if err != nil {
		return nil, err
	}
	return []func(){func() {
		o.meter.gaveUp.WithLabelValues(r.Saga, e.Step, string(e.Direction)).Inc()
		o.log.ErrorContext(ctx, "saga needs an operator: waybill saga show, then resume or skip", "saga", r.Saga, "key", r.Key, "round", r.Round,
			"tenant", r.Tenant, "step", e.Step, "direction", string(e.Direction), "asked", e.Asked)
	}}, nil
}

// publishSkips tells services of the steps that an operator saw to.
func (o *Observer) publishSkips(ctx context.Context, tx pgx.Tx, r Ref, entries []Entry) error {
	rows, err := tx.Query(ctx, `UPDATE saga.entries SET unpublished = false`+ofInstance+` AND unpublished RETURNING id`, r.args()...)
	if err != nil {
		return err
	}
	ids, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
	if err != nil || len(ids) == 0 {
		return err
	}
	ctx, err = causedBy(ctx, tx, r, entries)
	if err != nil {
		return err
	}
	for _, e := range entries {
		for _, id := range ids {
			if e.ID != id {
				continue
			}
			if err := o.deps.Outbox.Add(ctx, tx, contracts.StepSkipped{
				Key: r.Key, Saga: r.Saga, Round: int32(r.Round), Step: e.Step, Direction: direction(e.Direction),
			}); err != nil {
				return err
			}
		}
	}
	return nil
}

// causedBy has what is published continue the saga's chain of causes, from the
// event that was seen last.
func causedBy(ctx context.Context, tx pgx.Tx, r Ref, entries []Entry) (context.Context, error) {
	env := event.Envelope{Tenant: r.Tenant}
	for i := range entries {
		if e := &entries[i]; e.IsEvent() {
			env.ID, env.CorrelationID = e.ID, e.CorrelationID
		}
	}
	err := tx.QueryRow(ctx, `SELECT trace_parent FROM saga.entries`+ofInstance+` AND id = $5 LIMIT 1`, append(r.args(), env.ID)...).Scan(&env.TraceParent)
	if err != nil {
		return ctx, fmt.Errorf("find the last event: %w", err)
	}
	return event.WithCause(ctx, &env), nil
}

func direction(d Direction) contracts.Direction {
	if d == Back {
		return contracts.DirectionBack
	}
	return contracts.DirectionForward
}

func participle(d Direction) string {
	if d == Back {
		return "undone"
	}
	return "done"
}
