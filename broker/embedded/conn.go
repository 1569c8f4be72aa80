package embedded

import "net"

type conn struct {
	net.Conn
	l *listener
}

func (c *conn) Close() error {
	c.l.forget(c)
	return c.Conn.Close()
}
