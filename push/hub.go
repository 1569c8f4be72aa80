package push

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"
)

// Client makes a client of the cluster with options on top of the
// application's own.
type Client func(opts ...kgo.Opt) (*kgo.Client, error)

// Hub reads the log and hands every message to the connections of its channel.
type Hub struct {
	client  Client
	cfg     Config
	sealer  *sealer
	log     *slog.Logger
	metrics *metrics

	writers  *writers
	open     sync.WaitGroup // connections
	catching sync.WaitGroup // one for each socket whose client reads slowly

	doubt     chan struct{} // holds one token when credentials are to be asked about
	ready     chan struct{}
	readyOnce sync.Once

	mu      sync.Mutex // never held while anything waits for a client or the broker
	window  *window    // nil while the log is not loaded: nobody is served
	wheel   wheel
	total   int
	perKey  map[string]int
	bearers map[string]*bearer // by the credential's ID
	closing bool
}

// New makes a hub that reads nothing yet.
func New(client Client, cfg Config) (*Hub, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	s, err := newSealer(cfg.Key)
	if err != nil {
		return nil, err
	}
	h := &Hub{
		client: client, cfg: cfg, sealer: s, log: cfg.Logger,
		ready: make(chan struct{}), doubt: make(chan struct{}, 1), writers: newWriters(),
		perKey: map[string]int{}, bearers: map[string]*bearer{},
	}
	h.metrics, err = newMetrics(cfg.Registerer)
	if err != nil {
		return nil, fmt.Errorf("push metrics: %w", err)
	}
	return h, nil
}

// Ready is closed once the tail is loaded for the first time.
func (h *Hub) Ready() <-chan struct{} { return h.ready }

// Loaded returns an error while nobody is served, for a readiness check: before
// the tail is loaded, and while it is read again after the log failed.
func (h *Hub) Loaded(context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closing || h.window == nil {
		return errors.New("the log's tail is being loaded")
	}
	return nil
}

// Run reads the log and keeps connections alive until ctx ends; then it ends
// all connections, each with a hint to come back soon, waits for that and
// returns. It is run once, and the HTTP server is shut down after it.
//
// It returns an error only for a client that cannot be made. Whatever else
// goes wrong with the log is logged and tried again, while clients are told to
// come back.
func (h *Hub) Run(ctx context.Context) error {
	h.startWriters()
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { h.turn(ctx); return nil })
	g.Go(func() error { h.recheck(ctx); return nil })
	g.Go(func() error { return h.read(ctx) })
	err := g.Wait()
	h.mu.Lock()
	h.closing = true
	h.mu.Unlock()
	h.open.Wait()
	h.writers.stop()
	h.catching.Wait()
	return err
}

// offer hands b to c, or ends c when it is too far behind. name is that of
// Delivery.Latest. The hub's mutex is held.
func (h *Hub) offer(c *conn, b []byte, name string) {
	if c.offer(b, name) {
		return
	}
	h.metrics.evictions.Inc()
	h.detach(c)
	c.evict()
}

// end lets c write what it has and then last. The hub's mutex is held.
func (h *Hub) end(c *conn, last []byte, grace time.Duration) {
	h.detach(c)
	c.finish(last, grace)
}

func (h *Hub) attach(c *conn, ch *channel) {
	c.channel, c.at = ch, len(ch.conns)
	ch.conns = append(ch.conns, c)
	h.wheel.add(c)
}

// detach takes c out of its channel and off the wheel; it may be called again.
// The last connection of a list takes the place of the one that leaves, which
// loops over such a list, from the end, rely on.
func (h *Hub) detach(c *conn) {
	ch := c.channel
	if ch == nil {
		return
	}
	end := len(ch.conns) - 1
	ch.conns[c.at] = ch.conns[end]
	ch.conns[c.at].at = c.at
	ch.conns[end] = nil
	ch.conns = ch.conns[:end]
	c.channel, c.personal = nil, nil
	h.wheel.remove(c)
	h.unbear(c)
	if h.window != nil {
		h.window.release(ch)
	}
}

// endAll ends every connection with the advice to come back soon: in time for
// whoever waits for the server to stop.
func (h *Hub) endAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.window = nil
	for i := range h.wheel.spokes {
		for s := h.wheel.spokes[i]; len(s) > 0; s = h.wheel.spokes[i] {
			h.end(s[len(s)-1], retry(restartRetry), endGrace)
		}
	}
}

const (
	restartRetry = 500 * time.Millisecond
	endGrace     = time.Second
)
