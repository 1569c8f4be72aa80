package queue

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// FullError is a queue that holds as many messages as it may. It is [ErrFull].
type FullError struct {
	Queue      string
	MaxLength  int64
	RetryAfter time.Duration // when to look again
}

func (e *FullError) Error() string {
	return fmt.Sprintf("%v: %s holds the %d messages it may; send again later, have more workers take from it, or raise its limit with waybill queue create", ErrFull, e.Queue, e.MaxLength)
}

// Is makes it an ErrFull.
func (e *FullError) Is(target error) bool { return errors.Is(target, ErrFull) }

// lookEvery is how old the known length may be.
const lookEvery = time.Second

// room is what this process knows of the queue's length. Counting costs as much
// as there is to count, so it is done now and then, by one sender for all.
type room struct {
	mu     sync.Mutex
	pace   pace
	length int64 // at the last look, and what was sent here since
	most   int64
}

// enter lets n more messages in, or says that the queue is full. It asks by the
// sender's own connection: one more might be had only when other senders, who
// wait here with theirs, give them back.
func (q *Queue) enter(ctx context.Context, db DB, n int64) error {
	r := &q.room
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pace.may(lookEvery) {
		if err := q.look(ctx, db); err != nil {
			return err
		}
	}
	if r.length+n > r.most && r.length > 0 { // a batch larger than the limit may go into an empty queue
		return &FullError{Queue: q.cfg.Name, MaxLength: r.most, RetryAfter: lookEvery}
	}
	r.length += n
	return nil
}

// look counts, but no further than to the limit.
func (q *Queue) look(ctx context.Context, db DB) error {
	began := time.Now()
	err := db.QueryRow(ctx, `SELECT q.max_length,
			(SELECT count(*) FROM (SELECT FROM waybill.queue_messages m WHERE m.queue = q.id LIMIT q.max_length) AS counted)
		FROM waybill.queues q WHERE q.tenant = $1 AND q.name = $2`, q.cfg.Tenant, q.cfg.Name).Scan(&q.room.most, &q.room.length)
	if errors.Is(err, pgx.ErrNoRows) {
		return q.unknown()
	}
	if err != nil {
		return fmt.Errorf("count queue %s: %w", q.cfg.Name, err)
	}
	q.room.pace.spent(began)
	return nil
}
