package consume

import "context"

func (r *run) clear(ctx context.Context) error {
	if _, err := r.db.Exec(ctx, `TRUNCATE effect`); err != nil {
		return err
	}
	return r.engines.Checkpoint(ctx)
}

// verify counts what is in the table against what was published. Rows of a key
// have ids in the order they were written.
func (r *run) verify(ctx context.Context) error {
	var rows, distinct, reordered int64
	err := r.db.QueryRow(ctx, `SELECT count(*), count(DISTINCT (account, n)), count(*) FILTER (WHERE n < before)
		FROM (SELECT account, n, lag(n) OVER (PARTITION BY account ORDER BY id) AS before FROM effect) e`).Scan(&rows, &distinct, &reordered)
	r.res.Lost += r.cfg.Events - distinct
	r.res.Duplicates += rows - distinct
	r.res.Reordered += reordered
	return err
}
