//go:build unix

package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
)

// lockDir keeps a second broker out of the log: two writers would interleave
// their batches in one file. The lock goes with the process, however it ends.
func lockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "waybill.lock"), os.O_CREATE|os.O_RDWR, 0o600) // #nosec G304 -- the operator's own directory
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrInUse
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}
