//go:build unix

package push

import (
	"errors"
	"syscall"
)

// writeNow writes as much of b as the socket takes without waiting.
func writeNow(raw syscall.RawConn, b []byte) (n int, err error) {
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for {
			n, failed = syscall.Write(int(fd), b)
			if !errors.Is(failed, syscall.EINTR) {
				return true
			}
		}
	})
	if err != nil {
		return 0, err
	}
	if errors.Is(failed, syscall.EAGAIN) {
		return 0, nil
	}
	if failed != nil {
		return 0, failed
	}
	return n, nil
}
