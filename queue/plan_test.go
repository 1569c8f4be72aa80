package queue

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The planner knows few leases, or none, in a table that changes as fast as
// this one: given the choice it reads the index of all of them, and workers
// that hold many slow each other down.
func TestStatementsFindMessagesByTheirIndexes(t *testing.T) {
	w := newWorld(t)
	q := w.queue("mail", Settings{})
	w.exec(`INSERT INTO waybill.queue_messages (queue, id, priority, state, due_at, content_type, body)
		SELECT id, gen_random_uuid(), 0, 'ready', now(), 'x', '' FROM waybill.queues, generate_series(1, 20000)`)
	w.exec(`ANALYZE waybill.queue_messages`)
	got := w.receive(q, 100)
	ids, tokens, err := parseReceipts(receipts(got))
	if err != nil {
		t.Fatal(err)
	}
	after := [MaxPriority + 1]int64{}
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		for name, c := range map[string]struct {
			want, sql string
			args      []any
		}{
			"receive": {"queue_messages_ready", leaseSQL, []any{after[:], 100, int64(1), int64(0)}},
			"ack":     {"queue_messages_pkey", ackSQL, []any{ids, tokens}},
			"nack":    {"queue_messages_pkey", nackSQL, []any{ids, tokens, "", int64(0), 0}},
			"extend":  {"queue_messages_pkey", extendSQL, []any{ids, tokens, int64(1000)}},
			"due":     {"queue_messages_due", dueSQL, []any{int64(0), 100, ""}},
		} {
			plan := w.explain(mode, c.sql, append([]any{"", "mail"}, c.args...)...)
			if !strings.Contains(plan, c.want) || strings.Contains(plan, "Seq Scan on queue_messages") || name == "ack" && strings.Contains(plan, "queue_messages_due") {
				t.Errorf("%s, %s:\n%s", name, mode, plan)
			}
		}
	}
}

func (w *world) explain(mode, sql string, args ...any) string {
	w.t.Helper()
	var lines []string
	err := pgx.BeginFunc(w.t.Context(), w.db, func(tx pgx.Tx) error {
		if _, err := tx.Exec(w.t.Context(), "SET LOCAL plan_cache_mode = "+mode); err != nil {
			return err
		}
		rows, err := tx.Query(w.t.Context(), "EXPLAIN "+sql, args...)
		if err != nil {
			return err
		}
		lines, err = pgx.CollectRows(rows, pgx.RowTo[string])
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}
