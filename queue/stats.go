package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Stats is what is in a queue.
type Stats struct {
	Tenant      string `json:"tenant"`
	Name        string `json:"name"`
	Ready       int64  `json:"ready"`       // may be delivered
	InFlight    int64  `json:"in_flight"`   // with workers
	Delayed     int64  `json:"delayed"`     // not to be delivered yet
	Waiting     int64  `json:"waiting"`     // behind others of their group
	Redelivered int64  `json:"redelivered"` // of all these, those that came back at least once
	Dead        int64  `json:"dead"`        // letters
	MaxLength   int64  `json:"max_length"`
	// Oldest is when the oldest message was sent that may be delivered; nil if
	// there is none.
	Oldest *time.Time `json:"oldest"`
}

const statsSQL = `
SELECT q.tenant, q.name, coalesce(m.ready, 0), coalesce(m.leased, 0), coalesce(m.delayed, 0), coalesce(m.waiting, 0),
	coalesce(m.again, 0), coalesce(d.n, 0), q.max_length, m.oldest
FROM waybill.queues q
LEFT JOIN LATERAL (
	SELECT count(*) FILTER (WHERE state = 'ready') AS ready, count(*) FILTER (WHERE state = 'leased') AS leased,
		count(*) FILTER (WHERE state = 'delayed') AS delayed, count(*) FILTER (WHERE state = 'waiting') AS waiting,
		count(*) FILTER (WHERE deliveries > CASE WHEN state = 'leased' THEN 1 ELSE 0 END) AS again,
		min(sent_at) FILTER (WHERE state = 'ready') AS oldest
	FROM waybill.queue_messages WHERE queue = q.id) m ON true
LEFT JOIN LATERAL (SELECT count(*) AS n FROM waybill.queue_dead WHERE queue = q.id) d ON true
`

// ReadStats counts the queues of a tenant, by name. It costs as much as there
// is to count: about a second for a few million messages.
func ReadStats(ctx context.Context, db DB, tenant string) ([]Stats, error) {
	return readStats(ctx, db, statsSQL+`WHERE q.tenant = $1 ORDER BY q.name`, tenant)
}

// Stats counts this queue.
func (q *Queue) Stats(ctx context.Context) (Stats, error) {
	all, err := readStats(ctx, q.db, statsSQL+`WHERE q.tenant = $1 AND q.name = $2`, q.cfg.Tenant, q.cfg.Name)
	if err != nil {
		return Stats{}, err
	}
	if len(all) == 0 {
		return Stats{}, q.unknown()
	}
	return all[0], nil
}

func readStats(ctx context.Context, db DB, sql string, args ...any) ([]Stats, error) {
	rows, err := db.Query(ctx, sql, args...)
	if err != nil {
		return nil, fmt.Errorf("count queues: %w", err)
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (s Stats, err error) {
		err = row.Scan(&s.Tenant, &s.Name, &s.Ready, &s.InFlight, &s.Delayed, &s.Waiting, &s.Redelivered, &s.Dead, &s.MaxLength, &s.Oldest)
		return s, err
	})
	if err != nil {
		return nil, fmt.Errorf("count queues: %w", err)
	}
	return all, nil
}
