package consumer

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Dropping is which parked events are to be given up: one event, or the whole
// sequence of a key of a group and topic.
type Dropping struct {
	Group  string  `json:"group"`
	Topic  string  `json:"topic,omitempty"`
	Tenant string  `json:"tenant,omitempty"` // only this one's
	Event  string  `json:"event,omitempty"`  // its id; or
	Key    *string `json:"key,omitempty"`    // everything that is parked of it
}

// Dropped is what was given up.
type Dropped struct {
	Run    string `json:"run"` // in waybill.dead_action; empty if nothing was
	Events int64  `json:"events"`
}

// Drop gives parked events up for good, as if they had been handled: their
// effects do not happen, also if they are delivered again, and what is behind
// them goes on. Who asked is kept in waybill.dead_action, for 90 days, with the
// place of each event; the copy in the dead letter topic stays for as long as
// that keeps it.
//
// An event that its handler is at work on is waited for; if that succeeds,
// nothing is dropped.
func Drop(ctx context.Context, db *pgxpool.Pool, d Dropping, a Ask) (Dropped, error) {
	if err := a.check(); err != nil {
		return Dropped{}, err
	}
	if err := d.Check(); err != nil {
		return Dropped{}, err
	}
	if a.Reason == "" {
		return Dropped{}, errors.New("drop: why? a reason is kept with what is given up")
	}
	var out Dropped
	err := pgx.BeginFunc(ctx, db, func(t pgx.Tx) (err error) {
		if a.DryRun {
			return t.QueryRow(ctx, `SELECT count(*) FROM waybill.parked WHERE `+droppingSQL, d.args()...).Scan(&out.Events)
		}
		out, err = d.drop(ctx, t, a)
		return err
	})
	if err != nil {
		return Dropped{}, fmt.Errorf("drop: %w", err)
	}
	return out, nil
}

// Check refuses what names neither an event nor a key's sequence.
func (d Dropping) Check() error {
	switch {
	case d.Group == "":
		return errors.New("drop: of which group?")
	case (d.Event == "") == (d.Key == nil):
		return errors.New("drop: want either an event or a key")
	case d.Key != nil && d.Topic == "":
		return errors.New("drop: a key of which topic?")
	}
	return nil
}

const droppingSQL = `group_name = $1 AND ($2 = '' OR topic = $2) AND ($3 = '' OR tenant = $3)
	AND ($4 = '' OR event_id = nullif($4, '')::uuid) AND ($5::bytea IS NULL OR key = $5)`

func (d Dropping) args() []any {
	var key []byte
	if d.Key != nil {
		key = []byte(*d.Key)
	}
	return []any{d.Group, d.Topic, d.Tenant, d.Event, key}
}

func (d Dropping) drop(ctx context.Context, t pgx.Tx, a Ask) (Dropped, error) {
	// The claims come first, in the order that a handler's transaction takes
	// them: the other way round the two would wait for each other.
	rows, err := t.Query(ctx, `SELECT seq, event_id FROM waybill.parked WHERE `+droppingSQL+` ORDER BY event_id`, d.args()...)
	if err != nil {
		return Dropped{}, err
	}
	var seqs []int64
	var ids [][16]byte
	var seq int64
	var id uuid.UUID
	if _, err := pgx.ForEachRow(rows, []any{&seq, &id}, func() error {
		seqs, ids = append(seqs, seq), append(ids, id)
		return nil
	}); err != nil {
		return Dropped{}, err
	}
	_, err = t.Exec(ctx, `INSERT INTO waybill.inbox (event_id, group_name) SELECT unnest($1::uuid[]), $2 ON CONFLICT DO NOTHING`, ids, d.Group)
	if err != nil {
		return Dropped{}, fmt.Errorf("claim: %w", err)
	}
	run := uuid.New()
	tag, err := t.Exec(ctx, `WITH gone AS (DELETE FROM waybill.parked WHERE seq = ANY($1) RETURNING *)
		INSERT INTO waybill.dead_action (run, action, by, reason, group_name, topic, partition, "offset", key,
			event_id, type, tenant, class, error, sequence)
		SELECT $2, 'drop', $3, $4, group_name, topic, partition, "offset", key, event_id, type, tenant, class, error, sequence
		FROM gone`, seqs, run, a.By, a.Reason)
	if err != nil || tag.RowsAffected() == 0 {
		return Dropped{}, err
	}
	// What comes next of a key is its head now. Should the partition's owner
	// park one behind at this moment, it finds that out within ten seconds.
	_, err = t.Exec(ctx, `UPDATE waybill.parked SET state = 'retrying', next_at = now() WHERE state = 'waiting' AND seq IN (
			SELECT min(p.seq) FROM waybill.parked p
			WHERE (p.group_name, p.topic, p.partition, p.key) IN (
				SELECT group_name, topic, partition, key FROM waybill.dead_action WHERE run = $1)
			GROUP BY p.topic, p.partition, p.key)`, run)
	return Dropped{Run: run.String(), Events: tag.RowsAffected()}, err
}
