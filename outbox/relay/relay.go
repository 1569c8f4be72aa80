// Package relay carries committed outbox rows to the broker.
//
// It reads the inserts from the WAL in commit order, produces them with many
// in flight, appends a mark for each acknowledged one and then confirms to
// Postgres the end of the highest commit up to which everything is marked. It
// promises that a committed event is published at least once, under the same
// id each time, and that the first copies of one key's events stand in the log
// in commit order, whenever any process dies.
//
// One relay works at a time: the replication slot is the lock, or an advisory
// lock when polling. A second one waits for it.
//
// A record that the broker refuses for good stops its partition: the relay says
// so, keeps what is behind it in the outbox, unmarked, and tries it again ever
// more seldom, until it goes through or an operator gives it up. The other
// partitions go on.
package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker/producer"
	"github.com/waybillhq/waybill/pg/wal"
)

// Schemas gives the registry's id for a schema, registering it if it has to.
type Schemas interface {
	RegisterText(ctx context.Context, subject, schema string) (id int, err error)
}

// NewClient makes a broker client with the relay's own options.
type NewClient func(opts ...kgo.Opt) (*kgo.Client, error)

// Mode is where a relay reads.
type Mode string

// Modes of a relay.
const (
	WAL     Mode = "wal"     // the outbox's rows, from the WAL
	Poll    Mode = "poll"    // the outbox's rows, from the table
	Message Mode = "message" // logical messages, from the WAL; there is no table
)

// Config is what may be set; its zero value works.
type Config struct {
	// Mode is WAL if empty.
	Mode Mode
	// ExactlyOnce publishes in transactions, so that a reader of committed
	// records sees no event twice. It needs a broker whose transactions survive
	// a crash, which the embedded one's do not.
	ExactlyOnce bool
	// Slot is the replication slot, waybill_outbox_<database> if empty.
	Slot string
	// Publication names the outbox table to the slot, waybill_outbox if empty.
	Publication string
	// MaxUnmarked bounds the events between reading and mark, 50,000 if zero.
	MaxUnmarked int
	// MaxBytes bounds the bytes of the events between reading and mark, 64 MiB
	// if zero.
	MaxBytes int
	// MaxBatchBytes bounds what is sent to a partition at once, 1 MiB if zero. A
	// larger record goes alone.
	MaxBatchBytes int
	// MaxRequests bounds the requests under way to one broker, 3 if zero.
	MaxRequests int
	// MarkInterval is the least time between two writes of marks, 25 ms if
	// zero. It bounds the fsyncs the relay costs the database.
	MarkInterval time.Duration
	// NoMarks leaves the marks out. A slot that is lost then costs the events
	// of its last second again, and those of the longest transaction open at
	// the time.
	NoMarks bool
	// PollInterval is, in mode Poll, how long a quiet outbox is left alone
	// unless a writer's notification says otherwise, 200 ms if zero.
	PollInterval time.Duration
	// Retry is the pause before what failed is tried again, 500 ms if zero. It
	// doubles, up to twentyfold, while nothing moves.
	Retry      time.Duration
	Logger     *slog.Logger          // slog.Default if nil
	Registerer prometheus.Registerer // of the metrics; none if nil
}

// Relay is the outbox's reader.
type Relay struct {
	db       *pgxpool.Pool
	client   NewClient
	registry Schemas
	cfg      Config
	log      *slog.Logger
	metrics  *metrics

	// Of Run alone, from one session to the next:
	unusable    bool      // the slot exists and cannot be read any more
	careful     bool      // the last session marked nothing
	position    string    // topic of what was published last, exactly once
	standsAt    uuid.UUID // event that was told to be in the WAL alone
	unpublished bool      // it was told that the publication leaves events out
}

// check refuses what cannot be done.
func (c *Config) check() error {
	switch c.Mode {
	case WAL, Poll, Message:
	default:
		return fmt.Errorf("relay mode %q: want %s, %s or %s", c.Mode, WAL, Poll, Message)
	}
	if c.Mode == Poll && c.NoMarks {
		return errors.New("a relay finds by the marks what to publish when it polls: it needs them")
	}
	if c.ExactlyOnce && (!c.tables() || c.NoMarks) {
		return errors.New("a relay publishes exactly once by the marks in the outbox's table: it needs mode wal or poll, and marks")
	}
	return nil
}

// tables tells whether events stand in a table until they are published.
func (c *Config) tables() bool { return c.Mode != Message }

// keeps tells whether what stands behind a refused event is found again in the
// table. Otherwise it is held in memory.
func (c *Config) keeps() bool { return c.tables() && !c.NoMarks }

const defaultPublication = "waybill_outbox"

// New makes a relay for the database of db. The role needs REPLICATION.
func New(db *pgxpool.Pool, client NewClient, schemas Schemas, cfg Config) *Relay {
	cfg.Mode = orDefault(cfg.Mode, WAL)
	cfg.Publication = orDefault(cfg.Publication, defaultPublication)
	cfg.Slot = orDefault(cfg.Slot, SlotName(db.Config().ConnConfig.Database))
	cfg.MaxUnmarked = orDefault(cfg.MaxUnmarked, 50_000)
	cfg.MaxBytes = orDefault(cfg.MaxBytes, 64<<20)
	cfg.MaxBatchBytes = orDefault(cfg.MaxBatchBytes, 1<<20)
	if cfg.Mode == Poll { // a sweep waits for the marks of the one before
		cfg.MarkInterval = orDefault(cfg.MarkInterval, time.Millisecond)
	}
	cfg.MarkInterval = orDefault(cfg.MarkInterval, 25*time.Millisecond)
	cfg.PollInterval = orDefault(cfg.PollInterval, 200*time.Millisecond)
	cfg.Retry = orDefault(cfg.Retry, 500*time.Millisecond)
	cfg.Logger = orDefault(cfg.Logger, slog.Default())
	return &Relay{
		db: db, client: client, registry: schemas, cfg: cfg, metrics: newMetrics(cfg.Registerer),
		log: cfg.Logger.With("part", "relay", "slot", cfg.Slot),
	}
}

// Run relays until ctx ends, reopening what breaks. It then waits up to five
// seconds for the broker's word on what is in flight, so that an orderly stop
// leaves nothing to send again but a transaction it was in the middle of, and
// returns nil.
func (r *Relay) Run(ctx context.Context) error {
	if err := r.cfg.check(); err != nil {
		return err
	}
	if n := r.db.Config().MaxConns; n < 2 {
		return fmt.Errorf("the relay's pool has %d connection: it needs two, one to read by while another writes marks", n)
	}
	standby := false
	wait := r.cfg.Retry
	for ctx.Err() == nil {
		moved, err := r.session(ctx)
		busy := errors.Is(err, wal.ErrSlotInUse) || errors.Is(err, errLockTaken)
		if moved || busy {
			wait = r.cfg.Retry
		}
		switch {
		case ctx.Err() != nil: // what broke, broke because of the stop
			if err != nil {
				r.log.WarnContext(ctx, "stopped untidily; events may be sent again", "error", err)
			}
			return nil
		case busy:
			if !standby {
				r.log.InfoContext(ctx, "standing by: another relay is at work")
			}
			standby = true
		default:
			standby = false
			r.metrics.failures.Inc()
			r.log.ErrorContext(ctx, "relay stopped, trying again", "error", err, "in", wait)
		}
		pause(ctx, wait)
		wait = min(2*wait, 20*r.cfg.Retry)
	}
	return nil
}

// session relays until something breaks, or until ctx ends (nil). It tells
// whether any event came through.
func (r *Relay) session(ctx context.Context) (moved bool, err error) {
	if r.cfg.ExactlyOnce {
		if r.position, err = PositionTopic(ctx, r.db, r.cfg.Slot); err != nil {
			return false, unlessDone(ctx, err)
		}
	}
	if r.cfg.Mode == Poll {
		return r.pollSession(ctx)
	}
	return r.walSession(ctx)
}

// walSession lasts as long as a replication connection.
func (r *Relay) walSession(ctx context.Context) (moved bool, err error) {
	if err := r.ensureSlot(ctx); err != nil {
		return false, unlessDone(ctx, err)
	}
	stream, err := wal.Open(ctx, wal.Config{
		Conn: &r.db.Config().ConnConfig.Config, Slot: r.cfg.Slot, Publication: r.cfg.Publication,
		Messages: true,
	})
	if err != nil {
		return false, unlessDone(ctx, err)
	}
	defer closeStream(ctx, stream)
	// Only now: while we read the slot, nobody makes it anew.
	complete, err := r.isComplete(ctx)
	if err != nil {
		return false, unlessDone(ctx, err)
	}
	client, err := r.newClient()
	if err != nil {
		return false, err
	}
	defer client.Close()

	s := newSession(r, stream, client)
	err = s.run(ctx, func(ctx context.Context) error {
		if err := s.reader.prepare(ctx, complete); err != nil {
			return err
		}
		return s.reader.stream(ctx)
	})
	r.unusable = errors.Is(err, wal.ErrPublicationMissing)
	r.careful = s.marker.done == 0
	return !r.careful, err
}

// newClient makes a client of the broker's, with what transactions need.
func (r *Relay) newClient(opts ...kgo.Opt) (*kgo.Client, error) {
	if r.cfg.ExactlyOnce {
		opts = append(opts, producer.TransactionOptions()...)
	}
	client, err := r.client(opts...)
	if err != nil {
		return nil, fmt.Errorf("broker client: %w", err)
	}
	return client, nil
}

// closeStream is bounded: the server may have gone without a word.
func closeStream(ctx context.Context, s *wal.Stream) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	s.Close(ctx)
}

// unlessDone is err, or nil if ctx has ended, which then is the cause.
func unlessDone(ctx context.Context, err error) error {
	if ctx.Err() == nil {
		return err
	}
	return nil
}

// Slot is the name of the replication slot the relay reads.
func (r *Relay) Slot() string { return r.cfg.Slot }

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
