package consumer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kgo"
)

// forget takes the claims of what is read again out of the inbox. Beyond the
// position there may be some too: events are not handled in the log's order.
func (r *resetting) forget(ctx context.Context, tx pgx.Tx) error {
	if r.opts.KeepInbox {
		return nil
	}
	for i := range r.moved {
		m := &r.moved[i]
		if !m.back() {
			continue
		}
		err := r.read(ctx, m, func(ids []uuid.UUID) error {
			tag, err := tx.Exec(ctx, `DELETE FROM waybill.inbox WHERE group_name = $1 AND event_id = ANY($2)`, r.group, ids)
			m.Forgotten += tag.RowsAffected()
			return err
		})
		if err != nil {
			return fmt.Errorf("forget what was handled of %s/%d: %w", m.Topic, m.Partition, err)
		}
	}
	return nil
}

// forgetAtOnce bounds the ids of one statement.
const forgetAtOnce = 1000

// quietFor is how long a reset waits for a record that the log should have.
const quietFor = 30 * time.Second

// read gives the ids of a partition's events from where it is moved to.
func (r *resetting) read(ctx context.Context, m *Moved, do func([]uuid.UUID) error) error {
	// All records are asked for, so that the last offset is seen: events of
	// transactions that were aborted are in no inbox.
	cl, err := r.deps.Client(kgo.KeepControlRecords(), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		m.Topic: {m.Partition: kgo.NewOffset().At(m.To)},
	}))
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	defer cl.Close()
	var ids []uuid.UUID
	for next := m.To; next < m.b.end; {
		wait, cancel := context.WithTimeout(ctx, quietFor)
		fetches := cl.PollRecords(wait, forgetAtOnce)
		cancel()
		if err := fetches.Err(); err != nil {
			return fmt.Errorf("read from offset %d: %w", next, err)
		}
		fetches.EachRecord(func(rec *kgo.Record) {
			next = rec.Offset + 1
			if !rec.Attrs.IsControl() && rec.Offset < m.b.end {
				env, _ := envelope(rec) // its id is right whatever is wrong with it
				ids = append(ids, env.ID)
			}
		})
		for chunk := range slices.Chunk(ids, forgetAtOnce) {
			if err := do(chunk); err != nil {
				return err
			}
		}
		ids = ids[:0]
	}
	return nil
}
