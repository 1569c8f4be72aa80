package wal

import (
	"net"
	"syscall"
	"time"
)

const tcpUserTimeout = 0x12 // TCP_USER_TIMEOUT of linux/tcp.h

// limitSilence has the kernel end conn when what was sent is not acknowledged
// for so long. We send every second, and keepalive probes are not sent while
// anything is on its way: a host that vanished would be noticed only after the
// last retransmission, a quarter of an hour later.
func limitSilence(conn net.Conn, d time.Duration) error {
	for { // TLS, gathering
		outer, ok := conn.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		conn = outer.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil // a socket of this machine
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return err
	}
	var set error
	err = raw.Control(func(fd uintptr) {
		set = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(d.Milliseconds()))
	})
	if err != nil {
		return err
	}
	return set
}
