package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DeadAction is something that was done about a dead event.
type DeadAction struct {
	Run       string    `json:"run"` // the request it was part of
	At        time.Time `json:"at"`
	Action    string    `json:"action"` // redrive or drop
	By        string    `json:"by"`     // "policy" for a rule
	Reason    string    `json:"reason"`
	Group     string    `json:"group"`
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"`
	Key       string    `json:"key"`
	EventID   string    `json:"event_id"`
	Type      string    `json:"type"`
	Tenant    string    `json:"tenant"`
	Error     string    `json:"error"`
}

// DeadActions lists what was done about events of a group, or all, and of a
// tenant, or all, the latest first and at most limit.
func DeadActions(ctx context.Context, db *pgxpool.Pool, group, tenant string, limit int) ([]DeadAction, error) {
	rows, err := db.Query(ctx, `SELECT run::text, at, action, by, reason, group_name, topic, partition, "offset", key,
			event_id::text, type, tenant, error
		FROM waybill.dead_action WHERE ($1 = '' OR group_name = $1) AND ($2 = '' OR tenant = $2)
		ORDER BY id DESC LIMIT $3`, group, tenant, limit)
	if err != nil {
		return nil, fmt.Errorf("actions on dead events: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (a DeadAction, err error) {
		var key []byte
		err = row.Scan(&a.Run, &a.At, &a.Action, &a.By, &a.Reason, &a.Group, &a.Topic, &a.Partition, &a.Offset, &key,
			&a.EventID, &a.Type, &a.Tenant, &a.Error)
		a.Key = string(key)
		return a, err
	})
	if err != nil {
		return nil, fmt.Errorf("actions on dead events: %w", err)
	}
	return out, nil
}

// Bounds of waybill.dead_action: a rule that drops notes each event.
const (
	keepActions     = "90 days"
	keepActionsRows = 1_000_000
	trimAtOnce      = 10_000
)

// trimActions keeps waybill.dead_action within its bounds, a part at a time.
func (s *session) trimActions(ctx context.Context) {
	_, err := s.deps.DB.Exec(ctx, `DELETE FROM waybill.dead_action WHERE id IN (
		SELECT id FROM waybill.dead_action
		WHERE at < now() - interval '`+keepActions+`' OR id <= (SELECT max(id) FROM waybill.dead_action) - $1
		ORDER BY id LIMIT $2)`, keepActionsRows, trimAtOnce)
	if err != nil && ctx.Err() == nil {
		s.log.WarnContext(ctx, "old actions on dead events are not forgotten", "error", err)
	}
}
