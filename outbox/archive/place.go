package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// StrayPrefix begins the label of a file of rows of the default partition.
const StrayPrefix = "default-"

const (
	extension = ".avro"
	tempName  = ".writing-*.tmp"
)

// place gives the file tmp its name, the first that is free: label.avro,
// label.1.avro and so on.
func place(tmp, dir, label string, taken func(string) bool) (path string, err error) {
	for n := 0; ; n++ {
		name := label + extension
		if n > 0 {
			name = fmt.Sprintf("%s.%d%s", label, n, extension)
		}
		if taken != nil && taken(Folder+"/"+name) {
			continue
		}
		path = filepath.Join(dir, name)
		err := moveNew(tmp, path)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("name archive file: %w", err)
		}
		return path, syncFolders(dir)
	}
}

// moveNew renames without overwriting, which only a link can: two processes may
// share the folder.
func moveNew(from, to string) error {
	err := os.Link(from, to)
	if err == nil {
		return os.Remove(from)
	}
	if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.ENOTSUP) && !errors.Is(err, syscall.ENOSYS) {
		return err
	}
	// A file system without links.
	if _, err := os.Lstat(to); !errors.Is(err, fs.ErrNotExist) {
		return errors.Join(err, fs.ErrExist)
	}
	return os.Rename(from, to)
}

// syncFolders brings the names to the disk, the folder's own too.
func syncFolders(dir string) error {
	for _, d := range []string{dir, filepath.Dir(dir)} {
		f, err := os.Open(d)
		if err != nil {
			return fmt.Errorf("sync archive: %w", err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("sync archive: %w", err)
		}
	}
	return nil
}

// Clean removes what killed processes left unfinished in the archive in dir. No
// Write may be under way there.
func Clean(dir string) error {
	dir = filepath.Join(dir, Folder)
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("clean archive: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if left, _ := filepath.Match(tempName, e.Name()); left {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				errs = append(errs, fmt.Errorf("clean archive: %w", err))
			}
		}
	}
	return errors.Join(errs...)
}

// Of gives the paths of the files of the archive in dir that have label for a
// name, be it with a number. Where there is no archive there are none.
func Of(dir, label string) ([]string, error) { return named(dir, label+".") }

// Strays gives the paths of the files of the archive in dir that hold rows of
// the default partition.
func Strays(dir string) ([]string, error) { return named(dir, StrayPrefix) }

func named(dir, prefix string) ([]string, error) {
	all, err := List(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.DeleteFunc(all, func(path string) bool {
		return !strings.HasPrefix(filepath.Base(path), prefix)
	}), err
}
