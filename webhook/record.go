package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/incident"
)

// recordMost is how many results are noted in one transaction.
const recordMost = 1000

// recordAll notes results as they come, as many at once as have come while the
// ones before were noted; until ctx ends, and then what is left, if it can be
// done.
func (s *Sender) recordAll(ctx context.Context) {
	said := false
	for {
		batch := s.batch()
		if len(batch) == 0 {
			select {
			case <-ctx.Done():
				if batch = s.batch(); len(batch) == 0 {
					return
				}
			case <-s.record:
				continue
			}
		}
		err := s.note(context.WithoutCancel(ctx), batch)
		if err == nil {
			said = false
			s.noted(batch)
			continue
		}
		if !said {
			s.log.WarnContext(ctx, "results of webhooks are not noted; tried again until they are", "results", len(batch), "error", err)
			said = true
		}
		s.mu.Lock()
		s.results = append(batch, s.results...)
		s.mu.Unlock()
		if !sleep(ctx, time.Second) {
			return // they are sent again
		}
	}
}

func (s *Sender) batch() []result {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(len(s.results), recordMost)
	batch := s.results[:n:n]
	s.results = s.results[n:]
	if len(s.results) == 0 {
		s.results = nil
	}
	return batch
}

// noted lets go of what was noted.
func (s *Sender) noted(batch []result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kick := false
	for i := range batch {
		j := batch[i].job
		delete(j.lane.held, j.id)
		if s.late != nil {
			s.late[lateKey{j.lane, j.id}] = true
		}
		if j.keyed { // the next of its key
			j.lane.more, kick = true, true
		}
	}
	if kick {
		poke(s.kick)
	}
}

const noteSQL = `UPDATE webhook.deliveries d SET state = r.state, attempts = d.attempts + 1,
		log = CASE WHEN jsonb_array_length(d.log) >= $6 THEN d.log - 0 ELSE d.log END || r.attempt,
		finished_at = CASE WHEN r.state <> 'pending' THEN now() END
	FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::text[], $5::jsonb[]) r (tenant, endpoint, event_id, state, attempt)
	WHERE d.tenant = r.tenant AND d.endpoint = r.endpoint AND d.event_id = r.event_id AND (d.state = 'pending' OR r.state = 'delivered')`

// note writes results, and how their endpoints are. A crash of the server may
// take the last of it: what was delivered is then sent again.
func (s *Sender) note(ctx context.Context, batch []result) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	c := columnsOf(batch)
	lanes := s.dirty()
	err := asOperator(ctx, s.store.db, func(tx pgx.Tx) error {
		b := &pgx.Batch{}
		b.Queue(`SET LOCAL synchronous_commit = off`)
		noted := int64(0)
		b.Queue(noteSQL, c.tenants, c.endpoints, c.ids, c.states, c.attempts, maxLog).Exec(func(tag pgconn.CommandTag) error {
			noted = tag.RowsAffected()
			return nil
		})
		b.Queue(`DELETE FROM webhook.due d USING unnest($1::text[], $2::uuid[], $3::uuid[], $4::text[]) r (tenant, endpoint, event_id, state)
			WHERE d.tenant = r.tenant AND d.endpoint = r.endpoint AND d.event_id = r.event_id AND r.state <> 'pending'`,
			c.tenants, c.endpoints, c.ids, c.states)
		if c.pending > 0 {
			b.Queue(`UPDATE webhook.due d SET fresh = false, attempts = d.attempts + 1, next_at = r.next_at
				FROM unnest($1::text[], $2::uuid[], $3::uuid[], $4::text[], $5::timestamptz[]) r (tenant, endpoint, event_id, state, next_at)
				WHERE d.tenant = r.tenant AND d.endpoint = r.endpoint AND d.event_id = r.event_id AND r.state = 'pending'`,
				c.tenants, c.endpoints, c.ids, c.states, c.nextAt)
		}
		lanes.queue(b)
		if err := tx.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		if noted < int64(len(batch)) {
			// Rows that were moving into the partition of their day may not have been
			// seen. Nothing is due of them any more: they would be pending for ever.
			_, err := tx.Exec(ctx, noteSQL+` AND r.state <> 'pending' AND d.state = 'pending'`, c.tenants, c.endpoints, c.ids, c.states, c.attempts, maxLog)
			if err != nil {
				return err
			}
		}
		return disableAll(ctx, tx, batch)
	})
	if err != nil {
		s.stillDirty(lanes)
		return fmt.Errorf("note webhook attempts: %w", err)
	}
	for i := range batch {
		if batch[i].disable != "" {
			s.log.WarnContext(ctx, "webhook endpoint is disabled", "tenant", batch[i].job.lane.tenant, "endpoint", batch[i].job.lane.endpoint, "reason", batch[i].disable)
		}
	}
	return nil
}

type resultColumns struct {
	tenants, states []string
	endpoints, ids  []uuid.UUID
	attempts        []string
	nextAt          []*time.Time
	pending         int
}

func columnsOf(batch []result) *resultColumns {
	c := &resultColumns{}
	for i := range batch {
		r := &batch[i]
		attempt, _ := json.Marshal(r.attempt) // of strings and numbers: never fails
		c.tenants, c.endpoints, c.ids = append(c.tenants, r.job.lane.tenant), append(c.endpoints, r.job.lane.endpoint), append(c.ids, r.job.id)
		c.states, c.attempts = append(c.states, string(r.state)), append(c.attempts, string(attempt))
		var next *time.Time
		if r.state == Pending {
			next = &r.nextAt
			c.pending++
		}
		c.nextAt = append(c.nextAt, next)
	}
	return c
}

// disableAll disables endpoints, unless somebody changed them since they were
// called, and has an operator hear of it.
func disableAll(ctx context.Context, tx pgx.Tx, batch []result) error {
	for i := range batch {
		r := &batch[i]
		if r.disable == "" {
			continue
		}
		l := r.job.lane
		tag, err := tx.Exec(ctx, `UPDATE webhook.endpoints SET state = 'disabled', reason = $3, revision = revision + 1, updated_at = now()
			WHERE tenant = $1 AND id = $2 AND state = 'enabled' AND revision = $4`, l.tenant, l.endpoint, r.disable, r.since)
		if err != nil || tag.RowsAffected() == 0 {
			if err != nil {
				return err
			}
			continue
		}
		err = incident.Record(ctx, tx, incident.Incident{
			Part: "webhook", Kind: "endpoint disabled", Subject: l.tenant + " " + l.endpoint.String(),
			Text: fmt.Sprintf("Webhook endpoint %s of tenant %s was disabled: %s. Its tenant has to mend it. "+
				"Then waybill webhook enable %[1]s --tenant %[2]s, and waybill webhook replay %[1]s --tenant %[2]s --failed for what was given up.", l.endpoint, l.tenant, r.disable),
			Detail: map[string]any{"tenant": l.tenant, "endpoint": l.endpoint, "reason": r.disable},
		})
		if err != nil {
			return err
		}
	}
	return nil
}
