//go:build unix

package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"
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

// syncTree syncs many files at once: a journal commits them together, where
// one after the other would each wait for a commit of its own.
func syncTree(root string) error {
	var group errgroup.Group
	group.SetLimit(64)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return ignoreGone(err)
		}
		if d.Type().IsRegular() || d.IsDir() {
			group.Go(func() error { return ignoreGone(syncPath(path)) })
		}
		return nil
	})
	return errors.Join(err, group.Wait())
}

// ignoreGone: the server already runs, and removes files of its own.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
