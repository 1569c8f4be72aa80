package push

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Config of a [Hub]. Topics, Route and Key are required; everything else has a
// default.
type Config struct {
	Topics []string // what the hub reads, all partitions of it
	Route  Route

	// Key seals cursors. Processes that share it and the topics understand
	// each other's cursors; with another key every cursor becomes a reset.
	Key [32]byte

	Tail      int // records kept to resume from, default 16384
	TailBytes int // bytes of messages kept to resume from, default 64 MiB
	// LatestTopics are those of Topics of which every delivery has Latest set:
	// telemetry. A cursor behind what the hub still holds of one is no gap, and
	// they have no share in Tail. A delivery of theirs without it is an error of
	// the route.
	LatestTopics []string
	Latest       int // messages kept as the newest of their name, default 32768
	LatestBytes  int // bytes of them, default 32 MiB

	Buffer int // messages that may wait for one connection, default 256

	Heartbeat    time.Duration // between comments on a quiet connection, default 15 s
	WriteTimeout time.Duration // for one write to a client, default 10 s
	// MaxLife of a connection; the actual one is 80 to 100 % of it, or of what is
	// left to its credential if that is less. Default 1 h.
	MaxLife time.Duration
	Retry   time.Duration // reconnection delay suggested to clients, default 1 s

	// Left tells for how long each credential is good yet by which streams are
	// open: 0 of one that is so no more, [Endless] of one without an end. It is
	// asked every Recheck about each of them once, at most 500 at a time, within
	// 10 s. While it fails, streams stay. nil: nobody is asked.
	Left    func(ctx context.Context, ids []string) ([]time.Duration, error)
	Recheck time.Duration // default 1 min

	Watch time.Duration // between looks at the log's end and layout, default 5 s

	MaxConnections int // in all, default 50000; beyond: 503
	MaxPerChannel  int // connections per channel, default 1000; beyond: 429
	// MaxPerCredential bounds the connections of one [Credential], so that a key
	// in the wrong hands, or in a loop, leaves its owner's others room; default 500,
	// beyond: 429.
	MaxPerCredential int
	// MaxPerKey bounds the connections that share what KeyOf returns, such as
	// the caller's tenant; both must be set to count.
	MaxPerKey int
	KeyOf     func(*http.Request) string

	Logger     *slog.Logger          // default: slog.Default()
	Registerer prometheus.Registerer // nil: metrics are kept and not exposed
}

func (c Config) withDefaults() (Config, error) {
	if len(c.Topics) == 0 || c.Route == nil {
		return c, errors.New("push: topics and route are required")
	}
	for _, t := range c.LatestTopics {
		if !slices.Contains(c.Topics, t) {
			return c, fmt.Errorf("push: %q is in LatestTopics and not in Topics", t)
		}
	}
	if c.Key == [32]byte{} {
		return c, errors.New("push: a key for cursors is required")
	}
	setDefault(&c.Tail, 16384)
	setDefault(&c.TailBytes, 64<<20)
	setDefault(&c.Latest, 32768)
	setDefault(&c.LatestBytes, 32<<20)
	setDefault(&c.Buffer, 256)
	setDefault(&c.Heartbeat, 15*time.Second)
	setDefault(&c.WriteTimeout, 10*time.Second)
	setDefault(&c.MaxLife, time.Hour)
	setDefault(&c.Retry, time.Second)
	setDefault(&c.Recheck, time.Minute)
	setDefault(&c.Watch, 5*time.Second)
	setDefault(&c.MaxConnections, 50_000)
	setDefault(&c.MaxPerChannel, 1000)
	setDefault(&c.MaxPerCredential, 500)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, nil
}

func setDefault[T int | time.Duration](v *T, d T) {
	if *v <= 0 {
		*v = d
	}
}
