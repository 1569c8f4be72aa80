// Package queue is point-to-point queues in Postgres: each message goes to one
// worker, which has it for the time of a lease and says when it is done.
//
// It promises, on any engine, since all of it is rows:
//
//   - a message that was sent in a transaction is in the queue if and only if
//     that transaction commits;
//   - a message stays until it is acknowledged, expires, is purged or is dead:
//     a worker that dies with it loses its lease, and another gets it;
//   - a receipt is good for one delivery: who lost a lease to another can no
//     longer acknowledge;
//   - of a message group one message is on its way at a time, and the next one
//     only after it is done or dead, in the order of sending;
//   - with [Work], a handler's effects in Postgres and the acknowledgement
//     commit together: they happen once.
//
// Delivery by [Queue.Receive] is at least once. Order without a group is by
// priority, then by sending, and approximate: workers run side by side and a
// message that comes back comes later. Messages of one group that transactions
// send which overlap in time have no order among each other.
//
// Limits: a body has at most [MaxBody] bytes; a queue holds at most its
// MaxLength messages, and then refuses with [ErrFull].
package queue

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// DB is a pool, a connection or the caller's transaction.
type DB interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Config names a queue; only Name is required.
type Config struct {
	Tenant string // whose queue it is, "" for the system's own
	Name   string
	// Signals wakes who waits for a message as soon as one is sent, and may be
	// shared by queues. Without it they look by themselves, every quarter of a
	// second.
	Signals *Signals
}

// Queue is one queue, to send to and receive from. It is safe for concurrent
// use, costs nothing to make, and need not exist yet: see [Declare].
type Queue struct {
	db      *pgxpool.Pool
	cfg     Config
	room    room
	mu      sync.Mutex
	scan    scan
	upkeeps upkeeps
}

// New makes a handle on the queue that cfg names.
func New(db *pgxpool.Pool, cfg Config) *Queue { return &Queue{db: db, cfg: cfg} }

// Name of the queue.
func (q *Queue) Name() string { return q.cfg.Name }

// Tenant whose queue it is, "" for the system's own.
func (q *Queue) Tenant() string { return q.cfg.Tenant }

// Errors; compare with errors.Is.
var (
	ErrUnknown = errors.New("no such queue")
	ErrFull    = errors.New("queue is full")
	ErrInvalid = errors.New("invalid")
	// ErrReceipt is of a receipt whose lease is over: the message was done,
	// or went or is going to another worker.
	ErrReceipt = errors.New("receipt is no longer good")
)

func (q *Queue) unknown() error {
	if q.cfg.Tenant != "" {
		return fmt.Errorf("%w as %q of tenant %q: declare it first", ErrUnknown, q.cfg.Name, q.cfg.Tenant)
	}
	return fmt.Errorf("%w as %q: declare it first, as waybill queue create does", ErrUnknown, q.cfg.Name)
}

// queueNumber finds a queue by tenant and name, the first two parameters of
// every statement here.
const queueNumber = `(SELECT id FROM waybill.queues WHERE tenant = $1 AND name = $2)`

var nameForm = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,99}$`)

func checkName(tenant, name string) error {
	if !nameForm.MatchString(name) {
		return fmt.Errorf("%w queue name %.120q: want up to 100 lower-case letters, digits, dots, _ and -", ErrInvalid, name)
	}
	return checkText("tenant", tenant)
}
