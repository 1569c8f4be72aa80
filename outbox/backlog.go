package outbox

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Backlog is the events that are committed and not marked as published. One on
// its way counts until its mark is written, some tens of milliseconds.
type Backlog struct {
	Events int64
	Oldest *time.Time // when the oldest of them was made, nil if there is none
}

// Beginner starts transactions: a pool or a connection.
type Beginner interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

// ReadBacklog counts the backlog up to limit; of a larger one Oldest is that
// of the counted, which are about the oldest. Every event whose writing
// transaction is below the xid below must be published, and if that is not zero
// every event from before xids were kept: none of these is looked at, so that
// the cost is that of the events above, about 2 s for a million, whatever the
// history. workers, 0 or more, are what it may take of the
// server's processors besides one; with any, Oldest of what was not counted to
// its end is less exact.
func ReadBacklog(ctx context.Context, db Beginner, below, limit int64, workers int) (b Backlog, err error) {
	err = pgx.BeginTxFunc(ctx, db, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, fmt.Sprintf(planForBacklog, workers)); err != nil {
			return err
		}
		// The mode that prepares no statement: its plan would be one for any xid.
		return tx.QueryRow(ctx, countBacklog, pgx.QueryExecModeExec, below, limit).Scan(&b.Events, &b.Oldest)
	})
	if err != nil {
		return Backlog{}, fmt.Errorf("count the outbox's backlog: %w", err)
	}
	return b, nil
}

const countBacklog = `SELECT count(*), min(time) FROM (SELECT e.time FROM waybill.outbox_events e
	WHERE ($1 = 0 OR e.xid >= $1) AND NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = e.id)
	LIMIT $2) unpublished`

// planForBacklog holds the planner to the one plan whose cost is bounded by
// the events that are looked at: find them by the BRIN index on xid, and probe
// for the mark of each in its own day. Of a table that grew since it was last
// analyzed the planner thinks otherwise, and reads days of history.
const planForBacklog = `SET LOCAL enable_seqscan = off;
	SET LOCAL enable_hashjoin = off; SET LOCAL enable_mergejoin = off;
	SET LOCAL enable_partitionwise_join = on; SET LOCAL jit = off;
	SET LOCAL max_parallel_workers_per_gather = %d; SET LOCAL parallel_setup_cost = 0; SET LOCAL parallel_tuple_cost = 0`

// PublishedBelow is the xid below which every event is published, as far as
// the relay of that slot has noted on this server; 0 if it has noted nothing.
func PublishedBelow(ctx context.Context, db queryer, slot string) (below int64, err error) {
	err = db.QueryRow(ctx, `SELECT coalesce((`+publishedBelow+`), 0)`, slot).Scan(&below)
	if err != nil {
		return 0, fmt.Errorf("look how far the outbox is published: %w", err)
	}
	return below, nil
}

type queryer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// A dump that was restored on another server, or a replica that was behind
// when it took over, begins with lower xids again.
const publishedBelow = `SELECT published_below FROM waybill.outbox_slots
	WHERE slot = $1 AND server = (SELECT system_identifier FROM pg_control_system())
	AND published_below <= pg_snapshot_xmax(pg_current_snapshot())::text::bigint`
