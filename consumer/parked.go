package consumer

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// ParkedKey is a key that waits behind an event that failed.
type ParkedKey struct {
	Topic     string    `json:"topic"`
	Partition int32     `json:"partition"`
	Key       string    `json:"key"`
	Offset    int64     `json:"offset"` // of the event at the head
	EventID   string    `json:"event_id"`
	Type      string    `json:"type"`
	Tenant    string    `json:"tenant"`
	Since     time.Time `json:"since"`
	Behind    int64     `json:"behind"` // events waiting behind the head
	Error     string    `json:"error"`
	Attempts  int       `json:"attempts"` // failed ones so far
	NextAt    time.Time `json:"next_at"`
}

// Parked lists the blocked keys of a group, longest blocked first.
func Parked(ctx context.Context, pool *pgxpool.Pool, group string) ([]ParkedKey, error) {
	rows, err := pool.Query(ctx, `
		SELECT topic, partition, key, "offset", event_id::text, type, tenant,
			parked_at, behind, error, attempts, next_at
		FROM (SELECT DISTINCT ON (topic, partition, key) *,
				count(*) OVER (PARTITION BY topic, partition, key) - 1 AS behind
			FROM waybill.parked WHERE group_name = $1
			ORDER BY topic, partition, key, seq) head
		ORDER BY parked_at, seq`, group)
	if err != nil {
		return nil, fmt.Errorf("parked keys of %s: %w", group, err)
	}
	keys, err := pgx.CollectRows(rows, scanKey)
	if err != nil {
		return nil, fmt.Errorf("parked keys of %s: %w", group, err)
	}
	return keys, nil
}

func scanKey(row pgx.CollectableRow) (k ParkedKey, err error) {
	var key []byte
	err = row.Scan(&k.Topic, &k.Partition, &key, &k.Offset, &k.EventID, &k.Type, &k.Tenant,
		&k.Since, &k.Behind, &k.Error, &k.Attempts, &k.NextAt)
	k.Key = string(key)
	return k, err
}
