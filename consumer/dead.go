package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DeadFilter chooses blocked keys by the event at their head. A zero field
// chooses all.
type DeadFilter struct {
	Group  string    `json:"group,omitempty"`
	Topic  string    `json:"topic,omitempty"`
	Type   string    `json:"type,omitempty"`
	Tenant string    `json:"tenant,omitempty"`
	Key    *string   `json:"key,omitempty"`
	Event  string    `json:"event,omitempty"`  // its id, a UUID
	Cause  string    `json:"cause,omitempty"`  // its id, as listed
	Since  time.Time `json:"since,omitzero"`   // died at or after
	Until  time.Time `json:"until,omitzero"`   // died before
	Parked bool      `json:"parked,omitempty"` // also keys whose event is still being tried
}

// whereSQL is a filter's condition, for the arguments that args gives.
const whereSQL = `($1 = '' OR group_name = $1) AND ($2 = '' OR topic = $2) AND ($3 = '' OR type = $3)
	AND ($4 = '' OR tenant = $4) AND ($5::bytea IS NULL OR key = $5) AND ($6 = '' OR event_id = nullif($6, '')::uuid)
	AND ($7 = '' OR cause_id = $7)
	AND ($8::timestamptz IS NULL OR coalesce(dead_at, last_failed_at, parked_at) >= $8)
	AND ($9::timestamptz IS NULL OR coalesce(dead_at, last_failed_at, parked_at) < $9)
	AND state = ANY($10)`

func (f DeadFilter) args() []any {
	states := []string{stateDead, stateRedrive}
	if f.Parked {
		states = append(states, stateRetrying)
	}
	var key []byte
	if f.Key != nil {
		key = []byte(*f.Key)
	}
	return []any{f.Group, f.Topic, f.Type, f.Tenant, key, f.Event, f.Cause, optional(f.Since), optional(f.Until), states}
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// DeadCause is what many dead events have in common.
type DeadCause struct {
	ID      string    `json:"id"`
	Group   string    `json:"group"`
	Topic   string    `json:"topic"`
	Type    string    `json:"type"`
	Class   string    `json:"class"`
	Cause   string    `json:"cause"`   // the error without ids, numbers and quoted parts
	Example string    `json:"example"` // the newest such error
	Keys    int64     `json:"keys"`    // blocked
	Tenants int64     `json:"tenants"`
	Redrive int64     `json:"redrive"` // keys that are to be tried again
	First   time.Time `json:"first"`
	Last    time.Time `json:"last"`
}

// DeadCauses groups what a filter chooses by cause, the most keys first and at
// most limit of them.
func DeadCauses(ctx context.Context, db *pgxpool.Pool, f DeadFilter, limit int) ([]DeadCause, error) {
	rows, err := db.Query(ctx, `SELECT cause_id, group_name, topic, type, max(class), max(cause),
			(array_agg(error ORDER BY seq DESC))[1], count(*), count(DISTINCT tenant), count(*) FILTER (WHERE state = 'redrive'),
			min(coalesce(dead_at, last_failed_at, parked_at)), max(coalesce(dead_at, last_failed_at, parked_at))
		FROM waybill.parked WHERE `+whereSQL+`
		GROUP BY cause_id, group_name, topic, type
		ORDER BY count(*) DESC, group_name, topic, type, cause_id LIMIT $11`, append(f.args(), limit)...)
	if err != nil {
		return nil, fmt.Errorf("causes of dead events: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (c DeadCause, err error) {
		err = row.Scan(&c.ID, &c.Group, &c.Topic, &c.Type, &c.Class, &c.Cause, &c.Example, &c.Keys, &c.Tenants, &c.Redrive, &c.First, &c.Last)
		return c, err
	})
	if err != nil {
		return nil, fmt.Errorf("causes of dead events: %w", err)
	}
	return out, nil
}
