package app

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/net/netutil"
)

// requestsMayTake is how long requests may go on when the server stops. A body
// that is sent slowly must not hold up the engines behind it.
const requestsMayTake = 3 * time.Second

// maxConnections bounds what one listener holds at a time: streams and a
// reserve. Further ones wait to be accepted.
const maxConnections = 60_000

// serve runs an HTTP server on ln until the stack stops.
func serve(stack *stack, name string, srv *http.Server, ln net.Listener) {
	var unused fresh
	srv.ConnState = unused.follow
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := srv.Serve(netutil.LimitListener(ln, maxConnections))
		if !errors.Is(err, http.ErrServerClosed) {
			stack.fail(fmt.Errorf("%s: %w", name, err))
		}
	}()
	stack.onStop(name, func(ctx context.Context) error {
		unused.close()
		patient, cancel := context.WithTimeout(ctx, requestsMayTake)
		defer cancel()
		err := srv.Shutdown(patient)
		if errors.Is(err, context.DeadlineExceeded) {
			err = srv.Close() // cut off; what they asked for is not promised
		}
		<-done
		return err
	})
}

// fresh is the connections on which nothing was asked yet. Browsers open some
// in advance, and a server's shutdown waits for them for five seconds.
type fresh struct {
	mu     sync.Mutex
	conns  map[net.Conn]bool
	closed bool
}

func (f *fresh) follow(c net.Conn, state http.ConnState) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case state != http.StateNew:
		delete(f.conns, c)
	case f.closed:
		_ = c.Close()
	default:
		if f.conns == nil {
			f.conns = map[net.Conn]bool{}
		}
		f.conns[c] = true
	}
}

func (f *fresh) close() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	for c := range f.conns {
		_ = c.Close()
	}
	f.conns = nil
}
