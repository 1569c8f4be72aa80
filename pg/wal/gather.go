package wal

import (
	"context"
	"net"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// A server sends each row of a small transaction by itself, and a reader that
// keeps up is woken for each: at 100,000 rows a second that costs more than all
// that is done with them, on both sides. A reader that was woken many times in
// quick succession therefore lets a little gather before it reads on. What comes
// now and then is read at once.

const (
	quick     = 50 * time.Microsecond // a wait that is hardly one
	crowded   = 128                   // so many in a row are a crowd
	gatherFor = 300 * time.Microsecond
	plenty    = 4 << 10 // after a read of so much there is more
)

// gatherConn is a connection whose reads gather.
type gatherConn struct {
	net.Conn
	read int // how much the last read brought
	run  int // reads in a row that hardly waited
}

// Read is for one goroutine, as the driver does it.
func (c *gatherConn) Read(b []byte) (int, error) {
	if c.run >= crowded && c.read < plenty {
		time.Sleep(gatherFor)
	}
	began := time.Now()
	n, err := c.Conn.Read(b)
	c.read = n
	if c.run++; time.Since(began) > quick {
		c.run = 0
	}
	return n, err
}

// NetConn is what is beneath, for those who set its options.
func (c *gatherConn) NetConn() net.Conn { return c.Conn }

// gather has the connections that dial makes gather their reads.
func gather(dial pgconn.DialFunc) pgconn.DialFunc {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &gatherConn{Conn: conn}, nil
	}
}
