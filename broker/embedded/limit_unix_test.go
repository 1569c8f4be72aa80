//go:build unix

package embedded

import (
	"os/signal"
	"strconv"
	"syscall"
)

// limitFiles lets this process write no file beyond a size: writes past it fail,
// as on a full disk.
func limitFiles(bytes string) error {
	if bytes == "" {
		return nil
	}
	n, err := strconv.ParseUint(bytes, 10, 63)
	if err != nil {
		return err
	}
	signal.Ignore(syscall.SIGXFSZ)
	return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: n, Max: n})
}
