package outbox

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
)

// Defaults of [GateConfig].
const (
	DefaultMaxBacklog = 1_000_000
	DefaultMaxWAL     = 8 << 30
)

// GateConfig is what may be set. Slot is required.
type GateConfig struct {
	// Slot is the replication slot that the relay reads; see relay.SlotName.
	Slot string
	// Poll says that the relay polls. A slot is then left over from another
	// mode: nothing of what it holds back says how far the relay is.
	Poll bool
	// MaxBacklog bounds the events that are committed and not published,
	// DefaultMaxBacklog if zero.
	MaxBacklog int64
	// MaxWAL bounds the WAL, in bytes, that the server keeps for the slot. If
	// zero it is half of the server's max_slot_wal_keep_size, at which the
	// server would give the slot up, or DefaultMaxWAL where that is not set.
	MaxWAL int64
	// Interval is the least time between two looks, 1 s if zero. It grows with
	// what a look costs, so that looking never takes above a twentieth of the
	// time.
	Interval time.Duration
	// Message is for events that are written to the WAL alone: see State.
	Message bool
	// SlotGrace, in message mode, is how long nothing is said of a slot that was
	// never there: the relay may be starting with us. 10 s if zero, none if below.
	SlotGrace time.Duration
	// Changed is told after each closing and opening, by Run. Default: nobody.
	Changed func(context.Context, GateState)
	Logger  *slog.Logger // slog.Default if nil
}

// Gate holds writers back when what they write is not carried away: past a
// number of events that wait, or bytes of WAL that wait, [Outbox.Add] refuses
// with [*OverloadError] until it is well below that again. It asks the database
// now and then, in [Gate.Run]; a write costs one load from memory.
//
// A gate that cannot ask keeps its last answer, which is open before the first:
// the write itself will tell what is wrong with the database. In message mode
// events exist only in the WAL, so that the gate is closed until it has seen
// the slot, closes when the slot is gone or about to be, and never allows more
// WAL than half of what the server keeps for it.
//
// Limits: processes that write look each for themselves, and what is written
// between two looks goes past the bound.
type Gate struct {
	db    *pgxpool.Pool
	cfg   GateConfig
	log   *slog.Logger
	state atomic.Pointer[GateState]

	// Of Run alone:
	server      int64      // its system identifier
	below       int64      // every event of a lower xid is marked there
	backlog     level      // of the last count
	oldest      *time.Time // of the last count
	wal         level      // of the last look
	countAt     time.Time  // when the next count is due
	countErr    error      // of the last count
	unreachable bool
	began       time.Time
	opened      bool           // ever
	told        OverloadReason // empty: open
}

// GateState is what a gate knows. Nil is unknown.
type GateState struct {
	Closed     *OverloadError // nil: open
	Backlog    *int64         // events committed and not published, counted up to one above MaxBacklog
	MaxBacklog int64
	Oldest     *time.Time // of these events, nil if there is none
	WAL        *int64     // bytes that the server keeps for the slot
	MaxWAL     int64
	Err        error // why the last look failed; the rest is then older
}

// NewGate makes a gate for events written through db, to be given to
// [Config.Gate] and run.
func NewGate(db *pgxpool.Pool, cfg GateConfig) *Gate {
	if cfg.MaxBacklog <= 0 {
		cfg.MaxBacklog = DefaultMaxBacklog
	}
	if cfg.Interval <= 0 {
		cfg.Interval = time.Second
	}
	if cfg.SlotGrace == 0 {
		cfg.SlotGrace = 10 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	g := &Gate{db: db, cfg: cfg, log: cfg.Logger.With("part", "outbox gate", "slot", cfg.Slot)}
	first := &GateState{MaxBacklog: cfg.MaxBacklog, MaxWAL: cfg.MaxWAL}
	if cfg.Message {
		first.Closed = &OverloadError{Reason: SlotUnseen, RetryAfter: time.Second}
	}
	g.state.Store(first)
	return g
}

// State is what the gate knew after its last look.
func (g *Gate) State() GateState { return *g.state.Load() }

// refusal is nil while the gate is open, and for no gate.
func (g *Gate) refusal() error {
	if g == nil {
		return nil
	}
	if closed := g.state.Load().Closed; closed != nil {
		return closed // made once, when the gate closed: a refusal allocates nothing
	}
	return nil
}

// Run looks until ctx ends, and returns nil.
func (g *Gate) Run(ctx context.Context) error {
	g.began = time.Now()
	t := time.NewTimer(0)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		s, wait := g.look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		g.enter(ctx, s)
		t.Reset(wait)
	}
}

// enter makes s the state and tells what changed.
func (g *Gate) enter(ctx context.Context, s GateState) {
	g.state.Store(&s)
	switch {
	case s.Err != nil && !g.unreachable:
		g.log.WarnContext(ctx, "cannot ask how far the outbox is behind; the last answer holds", "error", s.Err, "closed", s.Closed != nil)
	case s.Err == nil && g.unreachable:
		g.log.InfoContext(ctx, "can ask again how far the outbox is behind")
	}
	g.unreachable = s.Err != nil
	var why OverloadReason
	if s.Closed != nil {
		why = s.Closed.Reason
	}
	g.opened = g.opened || s.Closed == nil
	switch {
	case why == g.told, why == SlotUnseen, why == SlotMissing && !g.opened && time.Since(g.began) < g.cfg.SlotGrace:
		return
	case why == "":
		g.log.InfoContext(ctx, "writers of events are let in")
	default:
		g.log.WarnContext(ctx, "writers of events are refused", "reason", string(why), "error", s.Closed)
	}
	g.told = why
	if g.cfg.Changed != nil {
		g.cfg.Changed(ctx, s)
	}
}

// level is a quantity with a bound. It is over from the bound on until below
// four fifths of it: at the bound itself a gate would flutter.
type level struct {
	over  bool
	value *int64
}

func (l *level) set(v *int64, bound int64) {
	l.value = v
	switch {
	case v == nil: // what is not known closes nothing
		l.over = false
	case *v > bound:
		l.over = true
	case *v < opensBelow(bound):
		l.over = false
	}
}

func opensBelow(bound int64) int64 { return bound - bound/5 }
