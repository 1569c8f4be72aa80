package saga

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// The policy must not keep the planner from the index: deadlines look every
// second, however many instances there are.
func TestWhatIsDueIsFoundByItsIndex(t *testing.T) {
	w := newWorld(t)
	w.must(within(t.Context(), w.db, "", func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), `INSERT INTO saga.instances (tenant, saga, key, round, id, state, step, direction, asked, since, due_at, wake_at, started_at, updated_at, correlation_id)
			SELECT 't' || n % 50, 'book-trip', 'k' || n, 1, gen_random_uuid(), 'running', 'seat', 'forward', 0, now(), now() + n * interval '1 s', now() + n * interval '1 s', now(), now(), 'c'
			FROM generate_series(1, 20000) n`)
		return err
	}))
	if _, err := w.db.Exec(t.Context(), `ANALYZE saga.instances`); err != nil {
		t.Fatal(err)
	}
	for index, query := range map[string]string{
		"instances_wake":   `SELECT key FROM saga.instances WHERE wake_at <= now() AND saga = ANY ('{book-trip}') ORDER BY wake_at LIMIT 1 FOR UPDATE SKIP LOCKED`,
		"instances_tenant": `SELECT key FROM saga.instances WHERE ('t7' = '' OR tenant = 't7') AND id < 'ffffffff-ffff-ffff-ffff-ffffffffffff' ORDER BY id DESC LIMIT 101`,
		"instances_pkey":   `SELECT round FROM saga.instances WHERE tenant = 't7' AND saga = 'book-trip' AND key = 'k7'`,
	} {
		var plan []string
		w.must(within(t.Context(), w.db, "", func(tx pgx.Tx) error {
			rows, err := tx.Query(t.Context(), "EXPLAIN "+query)
			if err != nil {
				return err
			}
			plan, err = pgx.CollectRows(rows, pgx.RowTo[string])
			return err
		}))
		if text := strings.Join(plan, "\n"); !strings.Contains(text, index) {
			t.Errorf("%s is not used:\n%s", index, text)
		}
	}
}
