// Package cdc publishes the changes of chosen tables: what each row was, what
// it is now, in which transaction, and after that what the table itself says.
//
// It promises that the events of one key stand in its topic in commit order,
// that no committed change is lost whenever any process dies, and that after a
// snapshot the last record of each key is the table's row: a topic that keeps
// the last record of each key is the table. A change may come twice, under the
// same id. No column comes that is not on its table's allow-list.
//
// It reads a replication slot of its own. A table's snapshot is read in chunks
// between which the stream goes on, so that it can be stopped anywhere and gone
// on with; see snapshot.go for why the two fit together. Whatever makes the
// stream incomplete (a slot that was lost, a table that was not published for a
// time, a TRUNCATE) ends in a snapshot of what it concerns, and is told.
//
// Limits: rows that come or go with a partition (ATTACH, DETACH, DROP) have no
// event; ask for a snapshot after it. Times of change are commits: the states a
// row had within one transaction are told, but not when. One process works at a
// time; others wait for the slot.
package cdc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/pg/wal"
)

// NewClient makes a broker client with the options given.
type NewClient func(opts ...kgo.Opt) (*kgo.Client, error)

// Config is what may be set; its zero value works and publishes no table.
type Config struct {
	Tables []Table
	// Slot is the replication slot, waybill_cdc_<database> if empty.
	Slot string
	// Publication names the tables to the slot, waybill_cdc if empty. It is
	// made, altered and kept to Tables here.
	Publication string
	// Source is the events' CloudEvents source, /cdc/<database> if empty.
	Source string
	// Partitions of topics that are made, 6 if zero.
	Partitions int32
	// Capabilities of the broker: where it can compact, topics are compacted.
	Capabilities broker.Capabilities
	// Linger is how long records wait for others to go with, none if zero. On a
	// broker where each batch is a wait for the disk, as on the embedded one,
	// some milliseconds leave the disk to those who are in a hurry.
	Linger time.Duration
	// MaxInFlight bounds the records between reading and acknowledgement,
	// 20,000 if zero; MaxBytes their bytes, 32 MiB if zero.
	MaxInFlight int
	MaxBytes    int
	// MaxRecordBytes bounds one record, 1,000,000 if zero. An event that is
	// larger comes without its largest values, and says so. It must not exceed
	// max.message.bytes of any topic.
	MaxRecordBytes int
	// ChunkRows and ChunkBytes bound what a snapshot reads at once, 1000 rows
	// and 4 MiB if zero. The bytes may be exceeded by those of fifty rows.
	ChunkRows  int
	ChunkBytes int
	// Check is how often catalog and publication are compared with Tables, 10 s
	// if zero.
	Check time.Duration
	// Retry is the pause before what failed is tried again, 500 ms if zero. It
	// doubles, up to twentyfold, while nothing moves.
	Retry      time.Duration
	Logger     *slog.Logger          // slog.Default if nil
	Registerer prometheus.Registerer // of the metrics; none if nil
}

// DefaultPublication is the publication's name where none is set.
const DefaultPublication = "waybill_cdc"

// CDC publishes changes.
type CDC struct {
	db       *pgxpool.Pool
	client   NewClient
	registry Registry
	cfg      Config
	log      *slog.Logger
	metrics  *metrics
	tables   atomic.Pointer[[]Table]
	kick     chan struct{} // compare catalog and tables now

	// Of Run alone, from one session to the next:
	unusable bool // the slot exists and cannot be read any more
	limit    int  // of a record: MaxRecordBytes, or less where a broker took less
	schemas  *schemas
}

// New makes a publisher of changes in the database of db. The role needs
// REPLICATION, CREATE on the database, and to own the tables. Of db it uses up to
// four connections at once, and one more beside it that does nothing.
func New(db *pgxpool.Pool, client NewClient, reg Registry, cfg Config) *CDC {
	database := db.Config().ConnConfig.Database
	cfg.Slot = orDefault(cfg.Slot, SlotName(database))
	cfg.Publication = orDefault(cfg.Publication, DefaultPublication)
	cfg.Source = orDefault(cfg.Source, "/cdc/"+database)
	cfg.Partitions = orDefault(cfg.Partitions, 6)
	cfg.MaxInFlight = orDefault(cfg.MaxInFlight, 20_000)
	cfg.MaxBytes = orDefault(cfg.MaxBytes, 32<<20)
	cfg.MaxRecordBytes = orDefault(cfg.MaxRecordBytes, 1_000_000)
	cfg.ChunkRows = orDefault(cfg.ChunkRows, 1000)
	cfg.ChunkBytes = orDefault(cfg.ChunkBytes, 4<<20)
	cfg.Check = orDefault(cfg.Check, 10*time.Second)
	cfg.Retry = orDefault(cfg.Retry, 500*time.Millisecond)
	cfg.Logger = orDefault(cfg.Logger, slog.Default())
	c := &CDC{
		db: db, client: client, registry: reg, cfg: cfg, metrics: newMetrics(cfg.Registerer),
		log: cfg.Logger.With("part", "cdc", "slot", cfg.Slot), kick: make(chan struct{}, 1), limit: cfg.MaxRecordBytes,
		schemas: &schemas{registry: reg, source: cfg.Source, known: map[string]registered{}, types: types{}},
	}
	c.tables.Store(&cfg.Tables)
	return c
}

// SetTables replaces the tables, also while it runs: a new one gets its topic
// and its snapshot, one that is gone is no longer published.
func (c *CDC) SetTables(tables ...Table) error {
	if err := checkTables(tables); err != nil {
		return err
	}
	c.tables.Store(&tables)
	c.look()
	return nil
}

func (c *CDC) look() {
	select {
	case c.kick <- struct{}{}:
	default:
	}
}

// Run publishes until ctx ends, reopening what breaks. It then waits up to five
// seconds for the broker's word on what is in flight and returns nil. The only
// other error is a configuration that cannot be meant.
func (c *CDC) Run(ctx context.Context) error {
	if err := checkTables(*c.tables.Load()); err != nil {
		return fmt.Errorf("cdc: %w", err)
	}
	var present sync.WaitGroup
	defer present.Wait()
	seen, leave := context.WithCancel(ctx)
	defer leave()
	tried := make(chan struct{})
	present.Go(func() { c.bePresent(seen, tried) })
	select {
	case <-tried:
	case <-ctx.Done():
		return nil
	}
	standby := false
	wait := c.cfg.Retry
	for ctx.Err() == nil {
		moved, err := c.session(ctx)
		if moved || errors.Is(err, wal.ErrSlotInUse) {
			wait = c.cfg.Retry
		}
		switch {
		case ctx.Err() != nil: // what broke, broke because of the stop
			if err != nil {
				c.log.WarnContext(ctx, "stopped untidily; changes may be sent again", "error", err)
			}
			return nil
		case errors.Is(err, wal.ErrSlotInUse):
			if !standby {
				c.log.InfoContext(ctx, "standing by: another process reads the slot")
			}
			standby = true
		default:
			standby = false
			c.metrics.failures.Inc()
			c.log.ErrorContext(ctx, "the stream of changes broke, trying again", "error", err, "in", wait)
		}
		pause(ctx, wait)
		wait = min(2*wait, 20*c.cfg.Retry)
	}
	return nil
}

// Slot is the name of the replication slot that is read.
func (c *CDC) Slot() string { return c.cfg.Slot }

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
