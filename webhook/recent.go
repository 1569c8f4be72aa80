package webhook

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

const maxRecent = 30 // deliveries of each endpoint

// MaxBacklog is how far a backlog is counted; there may be more.
const MaxBacklog = 10_000

// Outcome is how far one of an endpoint's latest deliveries is.
type Outcome struct {
	Endpoint uuid.UUID
	EventID  uuid.UUID
	State    DeliveryState
	Attempts int       // since it was last begun
	At       time.Time // of the latest attempt, of being stored if there was none
}

// Recent is the latest thirty deliveries of each endpoint of a tenant, that of
// the latest event first: how they do, at a glance.
func (s *Store) Recent(ctx context.Context, tenant string) (all []Outcome, err error) {
	err = s.within(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT e.id, d.event_id, d.state, d.attempts, d.at
			FROM (SELECT tenant, id FROM webhook.endpoints WHERE tenant = $1 ORDER BY id LIMIT $2) e
			CROSS JOIN LATERAL (SELECT event_id, state, attempts, coalesce((log -> -1 ->> 'at')::timestamptz, stored_at) AS at
				FROM webhook.deliveries WHERE tenant = e.tenant AND endpoint = e.id ORDER BY event_id DESC LIMIT $3) d
			ORDER BY e.id, d.event_id DESC`, tenant, maxListed, maxRecent)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, pgx.RowToStructByPos[Outcome])
		return err
	})
	return all, err
}

// Backlog is what an endpoint has not got, each counted up to [MaxBacklog].
type Backlog struct {
	Pending int64 // waiting for their first attempt or the next
	Failed  int64 // given up; a replay sends them again
}

// Backlog counts what an endpoint has not got.
func (s *Store) Backlog(ctx context.Context, tenant string, endpoint uuid.UUID) (b Backlog, err error) {
	err = s.ofEndpoint(ctx, tenant, endpoint, func(tx pgx.Tx, _ Endpoint) error {
		return tx.QueryRow(ctx, `SELECT
			(SELECT count(*) FROM (SELECT FROM webhook.due WHERE tenant = $1 AND endpoint = $2 LIMIT $3) p),
			(SELECT count(*) FROM (SELECT FROM webhook.deliveries WHERE tenant = $1 AND endpoint = $2 AND state = 'failed' LIMIT $3) f)`,
			tenant, endpoint, MaxBacklog).Scan(&b.Pending, &b.Failed)
	})
	return b, err
}
