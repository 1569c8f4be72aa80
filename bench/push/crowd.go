package push

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// perAddress is how many connections one address has ports for, well below
	// what systems hand out.
	perAddress = 20_000
	// dialing is how many are opened at once: the listener's backlog is bounded.
	dialing = 64
	// patience is how long what was sent may take before it is called lost.
	patience = 30 * time.Second
)

// crowd is all the readers. Each has a goroutine, a small buffer and its own
// channel.
type crowd struct {
	server  Server
	conns   []net.Conn
	readers sync.WaitGroup
	round   atomic.Pointer[round]
	failed  atomic.Pointer[error]
}

// round is what is expected just now.
type round struct {
	base  time.Time
	sent  []atomic.Int64 // since base, of each event
	took  []atomic.Int64 // until it was read, 0 while it is not
	got   atomic.Int64
	twice atomic.Int64
	all   bool
}

func gather(ctx context.Context, s Server, n int) (*crowd, error) {
	c := &crowd{server: s, conns: make([]net.Conn, n)}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(dialing)
	for i := range n {
		g.Go(func() error { return c.join(gctx, i) })
	}
	if err := g.Wait(); err != nil {
		c.close()
		return nil, err
	}
	return c, nil
}

func (c *crowd) join(ctx context.Context, i int) error {
	d := net.Dialer{Timeout: patience}
	if runtime.GOOS == "linux" { // all of 127/8 is there
		d.LocalAddr = c.from(i)
	}
	conn, err := d.DialContext(ctx, "tcp", c.server.Address())
	if err != nil {
		return fmt.Errorf("connection %d: %w", i+1, err)
	}
	c.conns[i] = conn
	if _, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: bench\r\n\r\n", c.server.Path(channelOf(i))); err != nil {
		return err
	}
	rd := bufio.NewReaderSize(conn, 1024)
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	for open := false; !open; {
		l, err := rd.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("connection %d is not opened: %w", i+1, err)
		}
		open = c.server.Opened(l)
	}
	_ = conn.SetReadDeadline(time.Time{})
	c.readers.Go(func() { c.read(i, rd) })
	return nil
}

// from is an address with ports left for the i-th connection: another for each
// server, so that measurements beside each other do not take each other's.
func (c *crowd) from(i int) net.Addr {
	_, text, _ := net.SplitHostPort(c.server.Address())
	port, _ := strconv.Atoi(text) // a wrong one shows when it is dialled
	return &net.TCPAddr{IP: net.IPv4(127, byte(1+port/256), byte(port), byte(1+i/perAddress))}
}

var number = []byte(`"n":`)

func (c *crowd) read(i int, rd *bufio.Reader) {
	for {
		l, err := rd.ReadSlice('\n')
		if errors.Is(err, bufio.ErrBufferFull) {
			continue // padding
		}
		if err != nil {
			return
		}
		at := bytes.Index(l, number)
		if at < 0 {
			continue
		}
		digits, _, _ := bytes.Cut(l[at+len(number):], []byte(","))
		if n, err := strconv.Atoi(string(digits)); err == nil {
			c.note(i, n)
		}
	}
}

// note counts an event that was read.
func (c *crowd) note(i, n int) {
	r := c.round.Load()
	if r == nil {
		return
	}
	if r.all {
		n = i
	}
	if n >= len(r.took) {
		return
	}
	took := int64(time.Since(r.base)) - r.sent[n].Load()
	if !r.took[n].CompareAndSwap(0, max(took, 1)) {
		r.twice.Add(1)
		return
	}
	r.got.Add(1)
}

// expect begins a round of n events, each for one reader.
func (c *crowd) expect(n int) *round {
	r := &round{base: time.Now(), sent: make([]atomic.Int64, n), took: make([]atomic.Int64, n)}
	c.round.Store(r)
	return r
}

// expectAll begins a round of one event that each of n readers gets.
func (c *crowd) expectAll(n int) *round {
	r := c.expect(n)
	r.all = true
	return r
}

// await returns when n have come, or patience has run out.
func (c *crowd) await(ctx context.Context, r *round, n int) error {
	end := time.Now().Add(patience)
	for r.got.Load() < int64(n) && time.Now().Before(end) {
		if failed := c.failed.Load(); failed != nil {
			return fmt.Errorf("an event was not taken: %w", *failed)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Microsecond):
		}
	}
	return nil
}

func (r *round) waits() (all []time.Duration) {
	for i := range r.took {
		if took := r.took[i].Load(); took > 0 {
			all = append(all, time.Duration(took))
		}
	}
	return all
}

func (c *crowd) sent(err error) {
	if err != nil {
		c.failed.CompareAndSwap(nil, &err)
	}
}

func (c *crowd) close() {
	for _, conn := range c.conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
	c.readers.Wait()
}
