package wal

import (
	"context"
	"net"
	"time"
)

// interrupt ends reads of a connection when a context does. It is set up once
// for all reads under that context: watching each read costs more than reading
// a row.
type interrupt struct {
	ctx  context.Context
	stop func() bool
	done chan struct{}
}

// watch makes ctx the one that ends reads of conn.
func (i *interrupt) watch(ctx context.Context, conn net.Conn) {
	if i.ctx == ctx {
		return
	}
	i.release(conn)
	done := make(chan struct{})
	i.ctx, i.done = ctx, done
	i.stop = context.AfterFunc(ctx, func() {
		defer close(done)
		// A read that times out leaves the connection usable.
		_ = conn.SetReadDeadline(time.Unix(1, 0))
	})
}

// release lets reads go on whatever happens to the context.
func (i *interrupt) release(conn net.Conn) {
	if i.stop == nil {
		return
	}
	if !i.stop() {
		<-i.done
		_ = conn.SetReadDeadline(time.Time{})
	}
	i.ctx, i.stop = nil, nil
}
