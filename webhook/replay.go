package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
)

// PingType is the type of the event that [Store.Ping] sends.
const PingType = "webhook.ping"

// Resend sends an event to an endpoint again, or for the first time if the
// endpoint was not there then, as long as the event is kept. What is on its way
// already stays so.
func (s *Store) Resend(ctx context.Context, tenant string, endpoint, eventID uuid.UUID) error {
	return s.ofEndpoint(ctx, tenant, endpoint, func(tx pgx.Tx, e Endpoint) error {
		if e.State != Enabled {
			return ErrDisabled
		}
		var kept bool
		err := tx.QueryRow(ctx, `SELECT EXISTS (SELECT FROM webhook.messages WHERE tenant = $1 AND event_id = $2)`, tenant, eventID).Scan(&kept)
		if err != nil {
			return err
		}
		if !kept {
			return fmt.Errorf("event %s: %w; events are kept for some weeks", eventID, ErrNotFound)
		}
		_, err = again(ctx, tx, e, []uuid.UUID{eventID})
		return err
	})
}

// Replay says what is to be sent again.
type Replay struct {
	Failed bool      // what was given up; else all that the endpoint wants, delivered or not
	Since  time.Time // of events since; required unless Failed
	Until  time.Time // and before; zero: now
	After  uuid.UUID // behind the page that ended with this
	Limit  int       // events looked at; default and most 10 000
}

// Replayed is a page of what was found.
type Replayed struct {
	Count int64     // put on their way
	Next  uuid.UUID // to go on behind; nil: that was all
}

const maxReplay = 10_000

// Replay sends many events again, the oldest first, a page at a time. They stand
// behind first tries, as retries do. What is on its way already is passed over.
func (s *Store) Replay(ctx context.Context, tenant string, endpoint uuid.UUID, r Replay) (out Replayed, err error) {
	if r.Limit <= 0 || r.Limit > maxReplay {
		r.Limit = maxReplay
	}
	err = s.ofEndpoint(ctx, tenant, endpoint, func(tx pgx.Tx, e Endpoint) error {
		switch {
		case e.State != Enabled:
			return ErrDisabled
		case r.Since.IsZero() && !r.Failed:
			return fmt.Errorf("%w replay: say since when, or that you want what failed", ErrInvalid)
		}
		ids, last, err := r.page(ctx, tx, e)
		if err != nil {
			return err
		}
		out.Next = last
		out.Count, err = again(ctx, tx, e, ids)
		return err
	})
	return out, err
}

// page finds events; last is nil after the last of them.
func (r Replay) page(ctx context.Context, tx pgx.Tx, e Endpoint) (ids []uuid.UUID, last uuid.UUID, err error) {
	from, to := event.IDFloor(r.Since), uuid.Max
	if r.Since.IsZero() {
		from = uuid.Nil
	}
	if !r.Until.IsZero() {
		to = event.IDFloor(r.Until)
	}
	args := []any{e.Tenant, from, to, r.After, r.Limit}
	sql := `SELECT event_id, type FROM webhook.messages WHERE tenant = $1 AND event_id >= $2 AND event_id < $3 AND event_id > $4 ORDER BY event_id LIMIT $5`
	if r.Failed {
		sql = `SELECT event_id, type FROM webhook.deliveries WHERE tenant = $1 AND event_id >= $2 AND event_id < $3 AND event_id > $4
			AND endpoint = $6 AND state = 'failed' ORDER BY event_id LIMIT $5`
		args = append(args, e.ID)
	}
	rows, err := tx.Query(ctx, sql, args...)
	if err != nil {
		return nil, uuid.Nil, err
	}
	var id uuid.UUID
	var typ string
	n := 0
	_, err = pgx.ForEachRow(rows, []any{&id, &typ}, func() error {
		n++
		if r.Failed || wants(e.Types, typ) && typ != PingType {
			ids = append(ids, id)
		}
		return nil
	})
	if n == r.Limit {
		last = id
	}
	return ids, last, err
}

// again begins deliveries anew, or for the first time.
func again(ctx context.Context, tx pgx.Tx, e Endpoint, ids []uuid.UUID) (int64, error) {
	tag, err := tx.Exec(ctx, `WITH kept AS MATERIALIZED (
			SELECT event_id, type, CASE WHEN $4 AND key <> '' THEN key END AS key FROM webhook.messages WHERE tenant = $1 AND event_id = ANY($3)),
		begun AS (INSERT INTO webhook.deliveries AS d (tenant, endpoint, event_id, type, state)
			SELECT $1, $2, event_id, type, 'pending' FROM kept
			ON CONFLICT (tenant, endpoint, event_id) DO UPDATE SET state = 'pending', attempts = 0, finished_at = NULL
				WHERE d.state <> 'pending' RETURNING event_id)
		INSERT INTO webhook.due (tenant, endpoint, event_id, key, fresh)
			SELECT $1, $2, event_id, key, false FROM kept JOIN begun USING (event_id) ORDER BY event_id ON CONFLICT DO NOTHING`,
		e.Tenant, e.ID, ids, e.Ordered)
	return tag.RowsAffected(), err
}

// Ping sends an event of type [PingType] to an endpoint, whatever types it wants.
// What came of it is its delivery.
func (s *Store) Ping(ctx context.Context, tenant string, endpoint uuid.UUID) (eventID uuid.UUID, err error) {
	id := event.NewID()
	body, err := json.Marshal(payload{PingType, time.Now().UTC().Truncate(time.Millisecond), []byte(`{"endpoint":"` + endpoint.String() + `"}`)})
	if err != nil {
		return uuid.Nil, err
	}
	err = s.ofEndpoint(ctx, tenant, endpoint, func(tx pgx.Tx, e Endpoint) error {
		if e.State != Enabled {
			return ErrDisabled
		}
		c := fanOut([]Event{{ID: id, Tenant: tenant, Type: PingType, Body: body}},
			map[string][]listener{tenant: {{tenant: tenant, endpoint: endpoint, enabled: true}}})
		return c.write(ctx, tx)
	})
	return id, err
}
