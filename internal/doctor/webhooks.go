package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// overdue is how long a delivery may be due, and not be called, before somebody
// should look: in seconds, longer than a breaker stays open.
const overdue = 600

// mostWaiting bounds what is counted.
const mostWaiting = 10_000

// webhooks looks for deliveries that nobody makes.
func webhooks(ctx context.Context, s *Subject) ([]Finding, error) {
	var endpoints, disabled, waiting, late, senders int64
	b := &pgx.Batch{} // a transaction, for whose length all tenants' rows are seen
	b.Queue(`SELECT set_config('waybill.operator', 'on', true)`)
	b.Queue(`SELECT (SELECT count(*) FROM webhook.endpoints), (SELECT count(*) FROM webhook.endpoints WHERE state = 'disabled'),
			count(*), count(*) FILTER (WHERE next_at < now() - make_interval(secs => $2)), (SELECT count(*) FROM webhook.senders WHERE until > now())
		FROM (SELECT next_at FROM webhook.due LIMIT $1) d`, mostWaiting, overdue).QueryRow(func(row pgx.Row) error {
		return row.Scan(&endpoints, &disabled, &waiting, &late, &senders)
	})
	err := s.db.SendBatch(ctx, b).Close()
	switch {
	case code(err) == undefinedTable:
		return ok("none: no program of this version ever ran here"), nil
	case err != nil:
		return nil, err
	case waiting > 0 && senders == 0:
		return warn(deliveries(waiting)+" to be made, and no sender runs", "their tenants hear of nothing",
			s.start("waybill run webhook")), nil
	case late > 0:
		return warn(deliveries(late)+" due for ten minutes and longer", "their tenants hear of nothing: the senders cannot keep up, or cannot open their secrets",
			"read what the senders log: the key that secrets were sealed with may be missing (WAYBILL_WEBHOOK_KEYS); else run more of them"), nil
	}
	return ok("%s, %d of them disabled; %s to be made", plural(endpoints, "endpoint"), disabled, deliveries(waiting)), nil
}

func deliveries(n int64) string {
	switch {
	case n == 1:
		return "1 delivery"
	case n >= mostWaiting:
		return fmt.Sprintf("%d deliveries or more", mostWaiting)
	}
	return fmt.Sprintf("%d deliveries", n)
}
