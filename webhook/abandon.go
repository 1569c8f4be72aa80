package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Bounds of one round: the rest is found again, and what is to be sent does not
// wait for it.
const (
	abandonMost      = 1000 // deliveries of one endpoint
	abandonEndpoints = 20
)

// abandon fails what waits for endpoints that are disabled or gone. A call that
// is under way may succeed all the same, and is then noted as delivered.
func (s *Sender) abandon(ctx context.Context, dead []laneKey) error {
	attempt, err := json.Marshal(Attempt{At: time.Now().UTC(), Error: "the endpoint is disabled or was deleted"})
	if err != nil {
		return err
	}
	for _, k := range dead[:min(len(dead), abandonEndpoints)] {
		err := asOperator(ctx, s.store.db, func(tx pgx.Tx) error {
			rows, err := tx.Query(ctx, `DELETE FROM webhook.due WHERE tenant = $1 AND endpoint = $2 AND event_id = ANY (ARRAY(
					SELECT event_id FROM webhook.due WHERE tenant = $1 AND endpoint = $2 LIMIT $3 FOR UPDATE SKIP LOCKED))
					AND NOT EXISTS (SELECT FROM webhook.endpoints WHERE tenant = $1 AND id = $2 AND state = 'enabled') RETURNING event_id`,
				k.tenant, k.endpoint, abandonMost)
			if err != nil {
				return err
			}
			gone, err := pgx.CollectRows(rows, pgx.RowTo[uuid.UUID])
			if err != nil {
				return err
			}
			// Twice, for rows that were moving into the partition of their day; see note.
			for failed, tries := int64(0), 0; failed < int64(len(gone)) && tries < 2; tries++ {
				tag, err := tx.Exec(ctx, `UPDATE webhook.deliveries SET state = 'failed', finished_at = now(), log = log || $4::jsonb
					WHERE tenant = $1 AND endpoint = $2 AND event_id = ANY($3) AND state = 'pending'`, k.tenant, k.endpoint, gone, string(attempt))
				if err != nil {
					return err
				}
				failed += tag.RowsAffected()
			}
			return nil
		})
		if err != nil {
			return fmt.Errorf("fail the webhooks of a disabled endpoint: %w", err)
		}
	}
	return nil
}
