package relay

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg/wal"
)

// resent are events the slot will send although they are published: those that
// were marked and not confirmed before a crash, and those that were published
// from the table meanwhile.
type resent struct {
	ids   map[uuid.UUID]struct{}
	until wal.LSN // the stream brings none that committed after it
}

// maxResent bounds the memory of what a relay finds marked and not confirmed
// when it starts, about 40 bytes each. It takes a crash of Postgres to find
// many. Beyond it events may be published twice.
const maxResent = 2_000_000

func (r *resent) has(id uuid.UUID) bool {
	if len(r.ids) == 0 {
		return false
	}
	_, ok := r.ids[id]
	return ok
}

func (r *resent) add(id uuid.UUID, upTo wal.LSN) {
	if r.ids == nil {
		r.ids = map[uuid.UUID]struct{}{}
	}
	r.ids[id] = struct{}{}
	r.until = max(r.until, upTo)
}

// passed tells that the stream has come to the commit at lsn.
func (r *resent) passed(lsn wal.LSN) {
	if lsn > r.until && r.ids != nil {
		r.ids = nil
	}
}

// loadResent finds what is marked and not confirmed.
func (r *reader) loadResent(ctx context.Context) error {
	var limit *int
	if !r.s.cfg.ExactlyOnce {
		limit = new(int)
		*limit = maxResent
	}
	rows, err := r.s.db.Query(ctx, `SELECT p.id, p.commit_lsn::text FROM waybill.outbox_published p JOIN waybill.outbox_events e USING (id)
		WHERE p.commit_lsn >= (SELECT confirmed_flush_lsn FROM pg_replication_slots WHERE slot_name = $1)
			AND (e.xid IS NULL OR e.xid >= (SELECT made_at_xid FROM waybill.outbox_slots WHERE slot = $1))
		LIMIT $2`, r.s.cfg.Slot, limit)
	if err != nil {
		return fmt.Errorf("look for what is marked and not confirmed: %w", err)
	}
	var id [16]byte
	var lsn wal.LSN
	_, err = pgx.ForEachRow(rows, []any{&id, &lsn}, func() error {
		r.resent.add(id, lsn)
		return nil
	})
	if err != nil {
		return fmt.Errorf("look for what is marked and not confirmed: %w", err)
	}
	switch n := len(r.resent.ids); {
	case limit != nil && n == maxResent:
		r.s.log.WarnContext(ctx, "more events are marked and not confirmed than are kept in mind: some may be published again", "events", n)
	case n > 0:
		r.s.log.InfoContext(ctx, "the slot will send events that are published already: they are passed over", "events", n)
	}
	return nil
}
