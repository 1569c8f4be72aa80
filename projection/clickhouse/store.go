// Package clickhouse keeps the log of events in ClickHouse: a sink of package
// projection for who has more events than a Postgres is for.
//
// It promises that every event a group gives it is there before the group goes
// on, and that what is there twice is read once. An insert is acknowledged
// before the consumer's transaction commits, so a process that dies in between
// writes the same events again: the table is a ReplacingMergeTree sorted by what
// the event itself says, its id last, and FINAL makes one of all copies. Read
// with FINAL, or by id. While ClickHouse is out of reach the group waits; no
// event is parked for it, and none is passed over.
//
// Limits: nothing is counted once but by reading so. A write holds a connection
// of Postgres, with the claims on its events, until ClickHouse has answered.
package clickhouse

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	driver "github.com/ClickHouse/clickhouse-go/v2"

	"github.com/waybillhq/waybill/consumer"
)

// ErrUnavailable is a ClickHouse that could not be written to for as long as a
// handler may take. It is no fault of an event: see [Infrastructure].
var ErrUnavailable = errors.New("ClickHouse does not take events")

// Infrastructure is for consumer.Config of a group that writes to a [Store].
func Infrastructure(err error) bool {
	return errors.Is(err, ErrUnavailable) || consumer.OutOfReach(err)
}

// Config is what may be set; its zero value works.
type Config struct {
	// KeepDays is how long events are kept, by their own time; default 90.
	KeepDays int
	// Linger is how long the first of several writes waits for others to go with
	// it: ClickHouse wants few large inserts, and each partition's events are a
	// write of their own. Default 200 ms.
	Linger time.Duration
	Logger *slog.Logger // slog.Default() if nil
}

// Store is the table of events of one database of ClickHouse. It is safe for
// concurrent use.
type Store struct {
	conn  driver.Conn
	cfg   Config
	joint joint
	down  bool // told, and not taken back; joint's lock guards it
}

// Open makes a store by url, as clickhouse://user:password@host:9000/database or
// http://host:8123/database. It does not connect yet. No error has the password.
func Open(url string, cfg Config) (*Store, error) {
	opts, err := driver.ParseDSN(url)
	if err != nil {
		// The driver's words may have the URL in them, and it a password.
		return nil, errors.New("the URL of ClickHouse cannot be read: write clickhouse://user:password@host:9000/database, or http:// and port 8123")
	}
	if cfg.KeepDays <= 0 {
		cfg.KeepDays = 90
	}
	if cfg.Linger <= 0 {
		cfg.Linger = 200 * time.Millisecond
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	opts.DialTimeout = 5 * time.Second
	conn, err := driver.Open(opts)
	if err != nil {
		return nil, fmt.Errorf("open ClickHouse at %s: %w", strings.Join(opts.Addr, ", "), err)
	}
	return &Store{conn: conn, cfg: cfg}, nil
}

// Close ends its connections.
func (s *Store) Close() error { return s.conn.Close() }

// Conn is for reading. What reads events should say FINAL.
func (s *Store) Conn() driver.Conn { return s.conn }

// Prepare makes the table where it is not there. Partitions and order are made
// of the event's own words alone, so that copies meet and become one.
func (s *Store) Prepare(ctx context.Context) error {
	err := s.conn.Exec(ctx, fmt.Sprintf(`CREATE TABLE IF NOT EXISTS events (
			id UUID, tenant LowCardinality(String), type LowCardinality(String), subject String, sequence Int64,
			time DateTime64(6, 'UTC'), source LowCardinality(String), data String CODEC(ZSTD(1)))
		ENGINE = ReplacingMergeTree PARTITION BY toYYYYMM(time) ORDER BY (tenant, type, time, id)
		TTL toDateTime(time) + INTERVAL %d DAY
		SETTINGS non_replicated_deduplication_window = 1000`, s.cfg.KeepDays))
	if err != nil {
		return fmt.Errorf("make the table of events in ClickHouse: %w", err)
	}
	return nil
}
