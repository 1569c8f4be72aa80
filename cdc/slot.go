package cdc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// ensureSlot creates publication and slot if they are not there, and makes the
// slot anew if it cannot be read any more. What changed before a slot was
// created is not in it: every table then wants a snapshot, noted before the
// slot is there, so that a crash leaves none that looks complete.
//
// Processes take turns: one that finds the slot missing while another is about
// to make it would tell of a loss that is none.
func (c *CDC) ensureSlot(ctx context.Context) error {
	conn, err := c.db.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("look for slot %s: %w", c.cfg.Slot, err)
	}
	defer conn.Release()
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock(`+turnKey+`)`, c.cfg.Slot); err != nil {
		return fmt.Errorf("wait for another process to make slot %s: %w", c.cfg.Slot, err)
	}
	err = c.makeSlot(ctx)
	_, unlocked := conn.Exec(context.WithoutCancel(ctx), `SELECT pg_advisory_unlock(`+turnKey+`)`, c.cfg.Slot)
	return errors.Join(err, unlocked)
}

func (c *CDC) makeSlot(ctx context.Context) error {
	published, err := c.publicationExists(ctx)
	if err != nil {
		return err
	}
	exists, lost, err := c.lookAtSlot(ctx)
	if err != nil {
		return err
	}
	// A slot does not get past the WAL of a time without its publication, not
	// even when there is one of that name again.
	lost = lost || c.unusable || !published
	c.unusable = false // another process may make it anew first; we then hear again if not
	if exists && !lost {
		return nil
	}
	if err := c.noteLoss(ctx, exists, published); err != nil {
		return err
	}
	if exists {
		if _, err := c.db.Exec(ctx, `SELECT pg_drop_replication_slot($1)`, c.cfg.Slot); err != nil {
			return fmt.Errorf("drop lost slot %s: %w", c.cfg.Slot, err)
		}
	}
	if !published { // before the slot: see above
		if _, err := c.db.Exec(ctx, `CREATE PUBLICATION `+c.publication()+` WITH (`+publicationOptions+`)`); err != nil {
			return fmt.Errorf("create publication %s (the role needs CREATE on the database): %w", c.cfg.Publication, err)
		}
	}
	return c.createSlot(ctx)
}

const publicationOptions = `publish = 'insert, update, delete, truncate', publish_via_partition_root = true`

func (c *CDC) publication() string { return pgx.Identifier{c.cfg.Publication}.Sanitize() }

func (c *CDC) publicationExists(ctx context.Context) (exists bool, err error) {
	err = c.db.QueryRow(ctx, `SELECT EXISTS (SELECT FROM pg_publication WHERE pubname = $1)`, c.cfg.Publication).Scan(&exists)
	if err != nil {
		return false, fmt.Errorf("look for publication %s: %w", c.cfg.Publication, err)
	}
	return exists, nil
}

// lookAtSlot tells whether the slot is there, and whether the server gave it
// up.
func (c *CDC) lookAtSlot(ctx context.Context) (exists, lost bool, err error) {
	var here bool
	err = c.db.QueryRow(ctx, `SELECT coalesce(wal_status, '') = 'lost' AND NOT active,
		coalesce(database = current_database() AND plugin = 'pgoutput', false)
		FROM pg_replication_slots WHERE slot_name = $1`, c.cfg.Slot).Scan(&lost, &here)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return false, false, nil
	case err != nil:
		return false, false, fmt.Errorf("look for slot %s: %w", c.cfg.Slot, err)
	case !here:
		return false, false, fmt.Errorf("slot %s belongs to another database or plugin: choose another name", c.cfg.Slot)
	}
	return true, lost, nil
}

// noteLoss asks for a snapshot of every table, and tells of a slot that was
// there before.
func (c *CDC) noteLoss(ctx context.Context, exists, published bool) error {
	why := "the slot is gone"
	switch {
	case exists && !published:
		why = "the publication is gone, which its slot does not survive"
	case exists:
		why = "the slot is lost: it kept more WAL than max_slot_wal_keep_size, or its publication was dropped"
	}
	n, err := request(ctx, c.db, c.cfg.Slot, "", why)
	if err != nil {
		return err
	}
	tag, err := c.db.Exec(ctx, `UPDATE waybill.cdc_slots SET losses = losses + 1, made_at = now() WHERE slot = $1`, c.cfg.Slot)
	if err != nil {
		return fmt.Errorf("note the loss of slot %s: %w", c.cfg.Slot, err)
	}
	if tag.RowsAffected() == 0 && !exists {
		return nil // the first one
	}
	c.metrics.losses.Inc()
	c.tell(ctx, incidentSlotLost, c.cfg.Slot, "changes were missed because "+why+
		": a new slot is made and every table read again, after which the topics are what the tables are; the changes in between are told by their result alone",
		map[string]any{"tables": n})
	return nil
}

// createSlot waits for the transactions that are open now, which the server
// has to see the end of.
func (c *CDC) createSlot(ctx context.Context) error {
	c.log.InfoContext(ctx, "creating the replication slot")
	slow := time.AfterFunc(10*time.Second, func() {
		c.log.WarnContext(ctx, "still creating the replication slot: it waits for transactions that were open before; no change is published until they end")
	})
	defer slow.Stop()
	err := c.newSlot(ctx)
	if err != nil {
		return fmt.Errorf("create slot %s (wal_level must be logical and the role needs REPLICATION): %w", c.cfg.Slot, err)
	}
	return nil
}

// failoverSince is the first Postgres whose standbys can keep copies of a slot,
// if the servers are set to it.
const failoverSince = 170000

// newSlot makes a slot that follows a failover where the server has such and
// does not refuse, as a standby does.
func (c *CDC) newSlot(ctx context.Context) error {
	var version int
	if err := c.db.QueryRow(ctx, `SELECT current_setting('server_version_num')::int`).Scan(&version); err != nil {
		return err
	}
	if version >= failoverSince {
		_, err := c.db.Exec(ctx, `SELECT pg_create_logical_replication_slot($1, 'pgoutput', failover => true)`, c.cfg.Slot)
		var server *pgconn.PgError
		if !errors.As(err, &server) || server.Code != "0A000" && server.Code != "42883" {
			return err
		}
		c.log.WarnContext(ctx, "the server makes no slot that follows a failover: after one, every table is read again", "error", err)
	}
	_, err := c.db.Exec(ctx, `SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, c.cfg.Slot)
	return err
}

// noteSlot has the loss of a slot noticed from now on.
func (c *CDC) noteSlot(ctx context.Context) error {
	if _, err := c.db.Exec(ctx, `INSERT INTO waybill.cdc_slots (slot) VALUES ($1) ON CONFLICT DO NOTHING`, c.cfg.Slot); err != nil {
		return fmt.Errorf("note slot %s: %w", c.cfg.Slot, err)
	}
	return nil
}

// readTimeline tells which history of the database this is. A promoted standby
// begins a new one, in which places in the WAL may be lower than in what was
// published before and is not part of it.
func (c *CDC) readTimeline(ctx context.Context) (timeline int64, err error) {
	err = c.db.QueryRow(ctx, `SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::bigint`).Scan(&timeline)
	if err != nil {
		return 0, fmt.Errorf("look for the timeline: %w", err)
	}
	return timeline, nil
}
