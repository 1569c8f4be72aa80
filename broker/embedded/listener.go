package embedded

import (
	"context"
	"fmt"
	"net"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
)

// listener hands out guarded connections and tells the broker that it
// listens where clients shall connect to.
type listener struct {
	net.Listener
	addr    net.Addr
	max     int
	guard   *guard
	refused throttle
	broken  *broken
	ghosts  *ghosts
	ready   chan struct{} // closed once the guard is complete
	gone    chan struct{} // closed by Close
	close   sync.Once

	mu        sync.Mutex
	conns     map[*conn]struct{}
	shutd     bool
	suspended bool
}

func listen(ctx context.Context, cfg Config) (*listener, error) {
	inner, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Listen)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: listen on %s: %w", cfg.Listen, err)
	}
	l := &listener{
		Listener: inner, addr: inner.Addr(), max: cfg.MaxConnections, guard: newGuard(cfg),
		refused: throttle{log: cfg.Logger}, broken: newBroken(cfg), ghosts: newGhosts(cfg.Logger), ready: make(chan struct{}), gone: make(chan struct{}),
		conns: make(map[*conn]struct{}),
	}
	if cfg.Advertise != "" {
		l.addr = advertised(cfg.Advertise)
	}
	return l, nil
}

// client makes one of the broker's own.
func (l *listener) client(cfg Config) (*kgo.Client, error) {
	addr := l.Listener.Addr().String()
	return (broker.Config{Brokers: []string{addr}, ClientID: "the broker", Logger: cfg.Logger}).Client(
		// The advertised address need not be one this machine can reach.
		kgo.Dialer(func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "tcp", addr)
		}),
	)
}

// Addr is the advertised address: the broker puts it into its metadata.
func (l *listener) Addr() net.Addr { return l.addr }

// advertised is a host:port that need not be one of this machine.
type advertised string

func (advertised) Network() string  { return "tcp" }
func (a advertised) String() string { return string(a) }

// Accept implements net.Listener.
func (l *listener) Accept() (net.Conn, error) {
	select {
	case <-l.ready:
	case <-l.gone:
		return nil, net.ErrClosed
	}
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g, reason := l.admit(c)
		if g != nil {
			return g, nil
		}
		l.refused.warn("embedded broker closed a connection", "client", c.RemoteAddr().String(), "reason", reason)
		_ = c.Close()
	}
}

func (l *listener) admit(c net.Conn) (_ *conn, reason string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.shutd:
		return nil, "stopping"
	case l.suspended:
		return nil, "suspended"
	case len(l.conns) >= l.max:
		return nil, fmt.Sprintf("more than %d connections", l.max)
	}
	g := newConn(c, l)
	l.conns[g] = struct{}{}
	return g, ""
}

func (l *listener) forget(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.conns, c)
}

// Close implements net.Listener.
func (l *listener) Close() error {
	l.close.Do(func() { close(l.gone) })
	return l.Listener.Close()
}

// shut closes the listener and whatever is still connected.
func (l *listener) shut() error {
	_ = l.Close()
	l.mu.Lock()
	l.shutd = true
	l.mu.Unlock()
	l.hangUp()
	return nil
}

// suspend ends all connections and takes no more until it is called with false.
func (l *listener) suspend(yes bool) {
	l.mu.Lock()
	l.suspended = yes
	l.mu.Unlock()
	if yes {
		l.hangUp()
	}
}

func (l *listener) hangUp() {
	l.mu.Lock()
	open := make([]*conn, 0, len(l.conns))
	for c := range l.conns {
		open = append(open, c)
	}
	l.mu.Unlock()
	for _, c := range open {
		_ = c.Close()
	}
}
