package doctor

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// parked looks for events that a group's handler refuses, and those that wait
// behind them.
func parked(ctx context.Context, s *Subject) ([]Finding, error) {
	rows, err := s.db.Query(ctx, `SELECT group_name, count(*), count(DISTINCT (topic, partition, key)), min(parked_at),
			coalesce(max(error) FILTER (WHERE state <> 'waiting'), '')
		FROM waybill.parked GROUP BY group_name ORDER BY 2 DESC`)
	if err != nil {
		return nil, err
	}
	var group, why string
	var events, keys int64
	var since time.Time
	var list []string
	_, err = pgx.ForEachRow(rows, []any{&group, &events, &keys, &since, &why}, func() error {
		list = append(list, fmt.Sprintf("%s: %s of %s, since %s: %s", group, plural(events, "event"), plural(keys, "key"), since.Format(time.RFC3339), or(why, "no error noted yet")))
		return nil
	})
	switch {
	case code(err) == undefinedTable:
		return ok("none: no consumer ever ran here"), nil
	case err != nil:
		return nil, err
	case len(list) == 0:
		return ok("none"), nil
	}
	return warn(some(list), "their keys stand still in that group, and have no effect there, until the handler takes them",
		"mend what the error says: waybill dlq ls --parked lists them by cause. What is still being tried then goes on by itself, what is dead after waybill dlq redrive"), nil
}

func plural(n int64, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func times(n int64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
