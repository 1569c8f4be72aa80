package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
)

// ErrWriteFailed is the end of a broker that could not write its log.
var ErrWriteFailed = errors.New("a write to the broker's log failed, and nothing is acknowledged any more: " +
	"see to the disk (space, quota, file size limit, its own errors), then start again; what was acknowledged is kept")

// broken is whether a write to the log has failed.
//
// The engine counts a producer's batch before it writes it. After a write that
// failed it would take the same batch, sent again, for a copy of one that it has,
// and acknowledge what is nowhere. So nothing it says from then on leaves: the
// engine tells its log before it answers anybody, and answers go through conn.
// Only a new start helps, which knows producers by what is in the log.
type broken struct {
	dir   string
	log   *slog.Logger
	once  sync.Once
	yes   atomic.Bool
	ended chan struct{} // closed once it is
	why   string
}

func newBroken(cfg Config) *broken {
	return &broken{dir: cfg.Dir, log: cfg.Logger, ended: make(chan struct{})}
}

// writeFailed begins what the engine says when it could not write.
const writeFailed = "persist "

// hear is told what the engine warns of.
func (b *broken) hear(detail string) {
	if !strings.HasPrefix(detail, writeFailed) {
		return
	}
	b.yes.Store(true)
	b.once.Do(func() {
		b.why = detail
		b.log.Error("embedded broker stopped: "+ErrWriteFailed.Error(), "dir", b.dir, "detail", detail)
		close(b.ended)
	})
}

func (b *broken) err() error {
	return fmt.Errorf("embedded broker: %w (%s: %s)", ErrWriteFailed, b.dir, b.why)
}

// windows is where the engine keeps, on a clean stop, what it knows of producers.
const windows = "seq_windows.json"

// forget keeps a later start from knowing producers as this one does.
func (b *broken) forget() error {
	if !b.yes.Load() {
		return nil
	}
	if err := os.Remove(filepath.Join(b.dir, windows)); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("embedded broker: before the next start remove what it knew of producers: %w", err)
	}
	return nil
}
