package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Gap is numbers that a group reported missing, or an event that it handled, or
// had die, behind a higher number of its key.
type Gap struct {
	FoundAt   time.Time `json:"found_at"`
	Kind      string    `json:"kind"` // missing or late
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Offset    int64     `json:"offset"` // of the event that told it
	EventID   string    `json:"event_id"`
	Tenant    string    `json:"tenant"`
	Key       string    `json:"key"`
	First     int64     `json:"first"` // missing numbers, from here
	Last      int64     `json:"last"`  // to here; of a late event its own number, twice
}

// FoundGaps lists what a group reported, of a tenant or all, the latest first
// and at most limit. It is kept for 90 days.
func FoundGaps(ctx context.Context, db *pgxpool.Pool, group, tenant string, limit int) ([]Gap, error) {
	rows, err := db.Query(ctx, `SELECT found_at, kind, topic, partition, "offset", event_id::text, tenant, key, first, last
		FROM waybill.gap WHERE group_name = $1 AND ($2 = '' OR tenant = $2) ORDER BY id DESC LIMIT $3`, group, tenant, limit)
	if err != nil {
		return nil, fmt.Errorf("gaps of group %s: %w", group, err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (g Gap, err error) {
		var key []byte
		err = row.Scan(&g.FoundAt, &g.Kind, &g.Topic, &g.Partition, &g.Offset, &g.EventID, &g.Tenant, &key, &g.First, &g.Last)
		g.Key = string(key)
		return g, err
	})
	if err != nil {
		return nil, fmt.Errorf("gaps of group %s: %w", group, err)
	}
	return out, nil
}
