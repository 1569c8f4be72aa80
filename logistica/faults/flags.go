package faults

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Config is what may be set; its zero value works.
type Config struct {
	Every  time.Duration // between two looks at the database, 500 ms if zero
	Logger *slog.Logger  // slog.Default if nil
}

// Flags is what a process knows of the faults. It is safe for concurrent use.
type Flags struct {
	pool  *pgxpool.Pool
	every time.Duration
	log   *slog.Logger
	known atomic.Pointer[map[string]flag]
	// One look after another: the answer to an older one must not hide what a
	// newer one saw.
	looking sync.Mutex
}

// flag is a fault that is set.
type flag struct {
	value int64
	seed  int64
	until time.Time // by this process's clock; zero: without end
}

// New makes flags on a migrated database. They show nothing until [Flags.Run]
// or [Flags.Refresh] has looked.
func New(pool *pgxpool.Pool, cfg Config) *Flags {
	f := &Flags{pool: pool, every: cfg.Every, log: cfg.Logger}
	if f.every <= 0 {
		f.every = 500 * time.Millisecond
	}
	if f.log == nil {
		f.log = slog.Default()
	}
	return f
}

// Run keeps the flags fresh until ctx ends. What it cannot read it tells once,
// and keeps to what it read last.
func (f *Flags) Run(ctx context.Context) error {
	turn := time.NewTicker(f.every)
	defer turn.Stop()
	blind := false
	for {
		err := f.look(ctx)
		if err != nil && ctx.Err() == nil && !blind {
			f.log.WarnContext(ctx, "faults: cannot be read, the last ones hold", "error", err)
		}
		blind = err != nil
		select {
		case <-ctx.Done():
			return nil
		case <-turn.C:
		}
	}
}

// lookWithin bounds a look, lest one that hangs keeps the flags stale for good.
const lookWithin = 2 * time.Second

func (f *Flags) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	return f.Refresh(ctx)
}

// Refresh looks at the database now.
//
// How long a fault still lasts is the database's word, so that all processes
// agree on its end however their clocks differ.
func (f *Flags) Refresh(ctx context.Context) error {
	f.looking.Lock()
	defer f.looking.Unlock()
	now := time.Now()
	rows, err := f.pool.Query(ctx, `SELECT name, value, seed, ends_at IS NOT NULL, coalesce(ends_at - now(), '0')
		FROM faults.flags WHERE `+standing)
	if err != nil {
		return fmt.Errorf("read faults: %w", err)
	}
	known := map[string]flag{}
	var name string
	var on flag
	var ends bool
	var left time.Duration
	_, err = pgx.ForEachRow(rows, []any{&name, &on.value, &on.seed, &ends, &left}, func() error {
		if on.until = (time.Time{}); ends {
			on.until = now.Add(left)
		}
		known[name] = on
		return nil
	})
	if err != nil {
		return fmt.Errorf("read faults: %w", err)
	}
	f.known.Store(&known)
	return nil
}

// standing tells rows of faults that are not over.
const standing = `(ends_at IS NULL OR ends_at > now())`

// on is a fault as far as this process knows, false if it is off.
func (f *Flags) on(name string) (flag, bool) {
	known := f.known.Load()
	if known == nil {
		return flag{}, false
	}
	on, ok := (*known)[name]
	if !ok || !on.until.IsZero() && !time.Now().Before(on.until) {
		return flag{}, false
	}
	return on, true
}

// Value is a fault's value now, 0 if it is off.
func (f *Flags) Value(name string) int64 {
	on, _ := f.on(name)
	return on.value
}
