package proc

import (
	"math/rand/v2"
	"net"
	"strconv"
	"testing"
)

// Free is an address on loopback whose port nobody has. It lies outside the
// range that systems take outgoing connections from, so that nobody gets it
// while the program is down between two starts.
func Free(t testing.TB) string {
	t.Helper()
	for range 100 {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(20000+rand.IntN(12000)))
		l, err := net.Listen("tcp", addr)
		if err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

// Port is the port of addr.
func Port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}
