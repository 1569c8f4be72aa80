package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// failoverSince is the first Postgres whose standbys can keep copies of a slot,
// so that it is there when one of them is promoted. Which of them do, and
// whether the relay waits for them, is set on the servers: primary_conninfo
// with a dbname, primary_slot_name, hot_standby_feedback and
// sync_replication_slots on the standby, synchronized_standby_slots on the
// primary. Without the last, an event may be published whose commit the
// promoted standby never saw.
const failoverSince = 170000

// newSlot asks the server for the slot, as one that follows a failover where
// there are such. A server that has them and refuses is told of and obeyed.
func (r *Relay) newSlot(ctx context.Context, tx pgx.Tx) error {
	version, err := serverVersion(ctx, tx)
	if err != nil {
		return err
	}
	if version >= failoverSince {
		// In a subtransaction: a refusal must not end the caller's.
		err := pgx.BeginFunc(ctx, tx, func(tx pgx.Tx) error {
			_, err := tx.Exec(ctx, `SELECT pg_create_logical_replication_slot($1, 'pgoutput', failover => true)`, r.cfg.Slot)
			return err
		})
		if !refusesFailover(err) {
			return err
		}
		r.log.WarnContext(ctx, "the server makes no slot that follows a failover: after one, the relay makes a new slot and publishes what has no mark from the table",
			"error", err)
	}
	_, err = tx.Exec(ctx, `SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, r.cfg.Slot)
	return err
}

func serverVersion(ctx context.Context, tx pgx.Tx) (version int, err error) {
	if err := tx.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		return 0, fmt.Errorf("ask for the server's version: %w", err)
	}
	return version, nil
}

// refusesFailover: SQLSTATEs of a server that is itself a standby, or whose
// function knows no such parameter.
func refusesFailover(err error) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "0A000" || pg.Code == "42883")
}

// alterTimeout bounds the change of a slot, which waits while another relay
// reads it.
const alterTimeout = 5 * time.Second

// offerFailover lets a slot follow failovers that was made before the server
// could do that, as by an older Postgres or an older relay.
func (r *Relay) offerFailover(ctx context.Context) {
	var follows, active bool
	err := r.db.QueryRow(ctx, `SELECT coalesce((to_jsonb(s)->>'failover')::bool, current_setting('server_version_num')::int < $2), active
		FROM pg_replication_slots s WHERE slot_name = $1`, r.cfg.Slot, failoverSince).Scan(&follows, &active)
	if err != nil || follows || active { // who reads it has seen to it
		return
	}
	if err := r.alterSlot(ctx); err != nil {
		r.log.WarnContext(ctx, "the replication slot does not follow a failover: after one, the relay makes a new slot and publishes what has no mark from the table",
			"error", err, "hint", "drop the slot while no relay runs; the next one makes it anew")
		return
	}
	r.log.InfoContext(ctx, "the replication slot now follows a failover to a standby that synchronises slots")
}

// alterSlot needs a replication connection: there is no function for it.
func (r *Relay) alterSlot(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, alterTimeout)
	defer cancel()
	cfg := r.db.Config().ConnConfig.Config.Copy()
	cfg.RuntimeParams["replication"] = "database"
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err != nil {
		return fmt.Errorf("replication connection: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, fmt.Sprintf("ALTER_REPLICATION_SLOT %s (FAILOVER true)", pgx.Identifier{r.cfg.Slot}.Sanitize())).ReadAll()
	return err
}
