//go:build unix

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

const syncedFile = "synced"

// ensureSynced puts what initdb wrote onto the disk, once in the life of the
// data. Later the server's checkpoints do it, for the files they change.
func ensureSynced(at place) error {
	marker := filepath.Join(at.home, syncedFile)
	if _, err := os.Stat(marker); err == nil {
		return nil
	}
	if err := syncTree(at.data()); err != nil {
		return fmt.Errorf("put new data on disk: %w", err)
	}
	if err := errors.Join(os.WriteFile(marker, nil, 0o600), syncPath(at.home)); err != nil {
		return fmt.Errorf("note that new data is on disk: %w", err)
	}
	return nil
}

func syncTree(root string) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && (d.Type().IsRegular() || d.IsDir()) {
			err = syncPath(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the server runs, and has removed it
		}
		return err
	})
}

func syncPath(path string) error {
	f, err := os.Open(path) //nolint:gosec // the server's own file
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
