package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/incident"
)

const (
	fullEvery = 10 * time.Second
	fullLanes = 1000 // looked at in one statement
)

// measures looks, until ctx ends, for endpoints of which too much waits.
func (s *Sender) measures(ctx context.Context) {
	s.every(ctx, fullEvery, "what waits for webhook endpoints is not measured", s.measure)
}

// measure marks endpoints for which more than Config.MaxWaiting deliveries wait:
// further ones are written as failed, to be replayed, so that one endpoint that
// is away cannot fill the table. The mark goes when a tenth has been worked off.
// It follows within some seconds: what is handed over meanwhile goes past it.
func (s *Sender) measure(ctx context.Context) error {
	var keys []laneKey
	s.mu.Lock()
	for k, l := range s.lanes {
		if l.more || l.full {
			keys = append(keys, k)
		}
	}
	s.mu.Unlock()
	for len(keys) > 0 {
		n := min(len(keys), fullLanes)
		if err := s.measureSome(ctx, keys[:n]); err != nil {
			return fmt.Errorf("measure what waits: %w", err)
		}
		keys = keys[n:]
	}
	return nil
}

func (s *Sender) measureSome(ctx context.Context, keys []laneKey) error {
	tenants, endpoints := split(keys)
	most := s.cfg.MaxWaiting
	return asOperator(ctx, s.store.db, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `WITH waiting AS (
				SELECT w.tenant, w.endpoint, (SELECT count(*) FROM (SELECT FROM webhook.due d WHERE d.tenant = w.tenant AND d.endpoint = w.endpoint LIMIT $3) d) AS n
				FROM unnest($1::text[], $2::uuid[]) w (tenant, endpoint)),
			marked AS (UPDATE webhook.endpoints e SET is_full = NOT e.is_full FROM waiting w
				WHERE e.tenant = w.tenant AND e.id = w.endpoint AND CASE WHEN e.is_full THEN w.n < $4 ELSE w.n >= $3 END
				RETURNING e.tenant, e.id, e.is_full)
			SELECT * FROM marked`, tenants, endpoints, most, most-most/10)
		if err != nil {
			return err
		}
		type mark struct {
			Tenant   string
			Endpoint uuid.UUID
			Full     bool
		}
		marks, err := pgx.CollectRows(rows, pgx.RowToStructByPos[mark])
		if err != nil {
			return err
		}
		for _, m := range marks {
			s.mu.Lock()
			if l := s.lanes[laneKey{m.Tenant, m.Endpoint}]; l != nil {
				l.full = m.Full
			}
			s.mu.Unlock()
			if !m.Full {
				continue
			}
			err := incident.Record(ctx, tx, incident.Incident{
				Part: "webhook", Kind: "endpoint full", Subject: m.Tenant + " " + m.Endpoint.String(),
				Text: fmt.Sprintf("%[1]d deliveries wait for webhook endpoint %[2]s of tenant %[3]s: it does not keep up, or is away. Further ones are written as failed. "+
					"See waybill webhook show %[2]s --tenant %[3]s; once it has caught up, waybill webhook replay %[2]s --tenant %[3]s --failed sends them.", most, m.Endpoint, m.Tenant),
				Detail: map[string]any{"tenant": m.Tenant, "endpoint": m.Endpoint, "waiting": most},
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}
