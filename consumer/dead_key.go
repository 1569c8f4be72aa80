package consumer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DeadKey is a blocked key and the event at its head.
type DeadKey struct {
	Group     string     `json:"group"`
	Topic     string     `json:"topic"`
	Partition int32      `json:"partition"`
	Offset    int64      `json:"offset"`
	Key       string     `json:"key"`
	EventID   string     `json:"event_id"`
	Type      string     `json:"type"`
	Tenant    string     `json:"tenant"`
	State     string     `json:"state"`  // dead, redrive (to be tried again) or retrying
	Behind    int64      `json:"behind"` // events that wait behind the head
	Class     string     `json:"class"`
	Cause     string     `json:"cause_id"`
	Error     string     `json:"error"`
	Failures  int        `json:"failures"`
	First     *time.Time `json:"first_failure"`
	DeadAt    *time.Time `json:"dead_at"`
	CopiedAt  *time.Time `json:"copied_at"`  // when its copy was in the dead letter topic
	CopyError string     `json:"copy_error"` // why it is not, if the broker refused it
}

const keyColumns = `group_name, topic, partition, "offset", key, event_id::text, type, tenant, state,
	(SELECT count(*) FROM waybill.parked b WHERE b.group_name = p.group_name AND b.topic = p.topic
		AND b.partition = p.partition AND b.key = p.key AND b.seq > p.seq),
	class, cause_id, error, failures, first_failed_at, dead_at, copied_at, copy_error`

func (k *DeadKey) into(key *[]byte) []any {
	return []any{
		&k.Group, &k.Topic, &k.Partition, &k.Offset, key, &k.EventID, &k.Type, &k.Tenant, &k.State, &k.Behind,
		&k.Class, &k.Cause, &k.Error, &k.Failures, &k.First, &k.DeadAt, &k.CopiedAt, &k.CopyError,
	}
}

// DeadKeys lists what a filter chooses, the longest dead first and at most limit
// of them.
func DeadKeys(ctx context.Context, db *pgxpool.Pool, f DeadFilter, limit int) ([]DeadKey, error) {
	rows, err := db.Query(ctx, `SELECT `+keyColumns+` FROM waybill.parked p WHERE `+whereSQL+`
		ORDER BY coalesce(dead_at, last_failed_at, parked_at), seq LIMIT $11`, append(f.args(), limit)...)
	if err != nil {
		return nil, fmt.Errorf("dead events: %w", err)
	}
	out, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (k DeadKey, err error) {
		var key []byte
		err = row.Scan(k.into(&key)...)
		k.Key = string(key)
		return k, err
	})
	if err != nil {
		return nil, fmt.Errorf("dead events: %w", err)
	}
	return out, nil
}

// DeadEvent is a parked event with its bytes.
type DeadEvent struct {
	DeadKey
	Published time.Time    `json:"published"` // the record's time
	Headers   []DeadHeader `json:"headers"`
	Value     []byte       `json:"value"` // base64 in JSON
}

// DeadHeader is a header of a record. Bytes that are no text are replaced.
type DeadHeader struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// ErrNotParked is an event that is not in the parked table.
var ErrNotParked = errors.New("no such event is dead or parked")

// ShowDead gives a parked event in any state, of one group and, unless tenant
// is empty, one tenant. The error is ErrNotParked if there is none.
func ShowDead(ctx context.Context, db *pgxpool.Pool, group, tenant, event string) (DeadEvent, error) {
	var e DeadEvent
	var key []byte
	var names, values [][]byte
	err := db.QueryRow(ctx, `SELECT `+keyColumns+`, record_time, header_names, header_values, value
		FROM waybill.parked p WHERE event_id = $1 AND ($2 = '' OR group_name = $2) AND ($3 = '' OR tenant = $3)
		ORDER BY seq LIMIT 1`, event, group, tenant).
		Scan(append(e.into(&key), &e.Published, &names, &values, &e.Value)...)
	if errors.Is(err, pgx.ErrNoRows) {
		return e, fmt.Errorf("event %s: %w", event, ErrNotParked)
	}
	if err != nil {
		return e, fmt.Errorf("event %s: %w", event, err)
	}
	e.Key = string(key)
	for i := range names {
		e.Headers = append(e.Headers, DeadHeader{storable(string(names[i])), storable(string(values[i]))})
	}
	return e, nil
}
