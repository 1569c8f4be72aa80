package consumer

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// knownAtOnce bounds what is looked up of one hole: runs of numbers, each however
// long.
const knownAtOnce = 1000

// What a group or its operator dropped is handled as far as the numbers go. An
// event that was dropped while it waited for numbers before it was dropped with
// its hole.
const droppedSQL = `SELECT sequence, class = '` + classGap + `' AS with_hole FROM waybill.dead_action
	WHERE group_name = $1 AND topic = $2 AND tenant = $3 AND key = $4 AND action = 'drop' AND sequence > $5 AND sequence < $6`

// What the relay was told to give up has a mark of no partition.
const skippedSQL = ` UNION ALL SELECT e.sequence, false FROM waybill.outbox_skips k
	JOIN waybill.outbox_events e ON e.id = k.event_id
	WHERE e.topic = $2 AND e.tenant = $3 AND convert_to(e.subject, 'UTF8') = $4 AND e.sequence > $5 AND e.sequence < $6
		AND EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id AND p.log_partition = -1)`

// runsSQL makes runs of numbers of what is between its parts.
const (
	runsSQL = `SELECT min(sequence), max(sequence), bool_or(with_hole) FROM (
		SELECT sequence, with_hole, sequence - dense_rank() OVER (ORDER BY sequence) AS run FROM (`
	runsEndSQL = `) known) runs GROUP BY run ORDER BY 1 LIMIT $7`
)

// missing is which numbers between last and that of m are not accounted for.
func (s *session) missing(ctx context.Context, tx pgx.Tx, m *message, last int64) ([]span, error) {
	sql := droppedSQL
	var outbox bool // the database has one
	err := tx.QueryRow(ctx, `SELECT to_regclass('waybill.outbox_skips') IS NOT NULL AND to_regclass('waybill.outbox_published') IS NOT NULL`).Scan(&outbox)
	if err != nil {
		return nil, &outageError{fmt.Errorf("look for an outbox: %w", err)}
	}
	if outbox {
		sql += skippedSQL
	}
	n := numberingOf(m)
	rows, err := tx.Query(ctx, runsSQL+sql+runsEndSQL, s.cfg.Group, m.pos.Topic, n.tenant, []byte(n.key), last, m.env.Sequence, knownAtOnce)
	if err != nil {
		return nil, &outageError{fmt.Errorf("look for events that were given up: %w", err)}
	}
	out := []span{{last + 1, m.env.Sequence - 1}}
	var known span
	var withHole bool
	_, err = pgx.ForEachRow(rows, []any{&known.first, &known.last, &withHole}, func() error {
		rest := out[len(out)-1]
		if withHole {
			out = []span{{known.last + 1, rest.last}}
		} else {
			out = append(out[:len(out)-1], span{rest.first, known.first - 1}, span{known.last + 1, rest.last})
		}
		return nil
	})
	if err != nil {
		return nil, &outageError{fmt.Errorf("look for events that were given up: %w", err)}
	}
	return above(out, last), nil // without the empty ones
}
