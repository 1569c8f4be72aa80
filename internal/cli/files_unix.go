//go:build unix

package cli

import (
	"fmt"
	"syscall"
)

// spareFiles is what a process has open besides its connections.
const spareFiles = 100

// enoughFiles refuses what would fail half way. The runtime has raised the soft
// limit to the hard one.
func enoughFiles(connections int) error {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return nil //nolint:nilerr // then it shows when they are opened
	}
	if uint64(connections)+spareFiles > l.Max {
		return fmt.Errorf("%d connections take as many file descriptors, and this shell allows %d: raise it with ulimit -n %d, or ask for fewer",
			connections, l.Max, connections+spareFiles)
	}
	return nil
}
