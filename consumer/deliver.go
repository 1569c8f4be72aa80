package consumer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// Deliver has the group's handler take one record in the caller's transaction,
// with the claim on its event in the inbox, as [Group.Run] would; handled is
// false for an event that was handled before and for one that nobody handles.
// The caller commits, or rolls back where there is an error.
//
// It is for tests of handlers: they choose themselves what comes when, twice or
// not at all, and need no broker. There is no order, no retry and no fence about
// it, so no running group may share its name with one that is delivered to.
func (g *Group) Deliver(ctx context.Context, tx pgx.Tx, rec *kgo.Record) (handled bool, err error) {
	m := g.read(rec)
	if m == nil || m.route.pass {
		return false, nil
	}
	if m.route.form == directForm {
		return false, fmt.Errorf("deliver %s: its handler takes no transaction", m.route.typ)
	}
	if m.fault != nil {
		return false, m.fault
	}
	tag, err := tx.Exec(ctx, `INSERT INTO waybill.inbox (event_id, group_name) VALUES ($1, $2) ON CONFLICT DO NOTHING`, m.env.ID, g.cfg.Group)
	if err != nil {
		return false, fmt.Errorf("claim event %s: %w", m.env.ID, err)
	}
	if tag.RowsAffected() == 0 {
		return false, nil
	}
	err = safely(func() error {
		if m.body, err = m.route.decode(event.WithCause(ctx, &m.env), m); err != nil {
			return err
		}
		return m.effect(ctx, tx)
	})
	if err != nil {
		return false, err
	}
	return true, forgetTenant(ctx, tx) // as between two events of one transaction
}
