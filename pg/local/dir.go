//go:build unix

package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// ErrInUse means that another live process runs the directory's server.
var ErrInUse = errors.New("directory is in use by another process")

// place is where the data is: home is a folder we own, and the server's user
// can reach.
type place struct{ home string }

func (p place) data() string { return filepath.Join(p.home, "data") }

// initialised: the data folder gets its name only when initdb is through.
func (p place) initialised() bool {
	_, err := os.Stat(filepath.Join(p.data(), "PG_VERSION"))
	return err == nil
}

// openDir makes the directory and locks it for as long as this Server lives.
// The kernel drops the lock with the process, however that ends; the server
// does not inherit it.
func (s *Server) openDir() error {
	mode := os.FileMode(0o700)
	if s.owner != nil {
		mode = 0o711 // its user passes through to data, and sees nothing else
	}
	if err := os.MkdirAll(s.cfg.Dir, mode); err != nil {
		return fmt.Errorf("make directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(s.cfg.Dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("open lock: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return ErrInUse
		}
		return fmt.Errorf("lock: %w", err)
	}
	s.lock = f
	return nil
}

func (s *Server) unlock() {
	if s.lock != nil {
		_ = s.lock.Close()
	}
}

// placeData finds or chooses where the data is. A link in Dir says where it
// went when the server's user could not reach Dir.
func (s *Server) placeData() (place, error) {
	link := filepath.Join(s.cfg.Dir, "data")
	if target, err := os.Readlink(link); err == nil {
		home, err := filepath.EvalSymlinks(filepath.Dir(target))
		if err != nil {
			return place{}, fmt.Errorf("follow the link %s to the data: %w", link, err)
		}
		return place{home}, nil
	}
	if s.owner == nil || s.owner.reaches(s.cfg.Dir) {
		real, err := filepath.EvalSymlinks(s.cfg.Dir)
		if err != nil {
			return place{}, fmt.Errorf("resolve directory: %w", err)
		}
		return place{real}, nil
	}
	home, err := s.newRefuge()
	if err != nil {
		return place{}, err
	}
	if err := os.Symlink(filepath.Join(home, "data"), link); err != nil {
		return place{}, fmt.Errorf("link to data: %w", err)
	}
	s.cfg.Logger.Info("data is kept elsewhere: the server's user cannot reach the directory",
		"user", s.owner.name, "dir", s.cfg.Dir, "data", filepath.Join(home, "data"))
	return place{home}, nil
}

// newRefuge makes a folder named after Dir. One that is there already belongs
// to an earlier or a moved Dir, and is never taken over.
func (s *Server) newRefuge() (string, error) {
	if err := os.MkdirAll(s.cfg.refuge, 0o711); err != nil { //nolint:gosec // must be passed through by the server's user
		return "", fmt.Errorf("make %s: %w", s.cfg.refuge, err)
	}
	sum := sha256.Sum256([]byte(s.cfg.Dir))
	name := filepath.Join(s.cfg.refuge, hex.EncodeToString(sum[:8]))
	for try := 0; ; try++ {
		home := name
		if try > 0 {
			home = fmt.Sprintf("%s-%d", name, try)
		}
		err := os.Mkdir(home, 0o711) //nolint:gosec // as above
		if err == nil {
			return home, nil
		}
		if !errors.Is(err, os.ErrExist) || try >= 1000 {
			return "", fmt.Errorf("make %s: %w", home, err)
		}
		s.cfg.Logger.Warn("data of an earlier directory of this name is left in place", "data", home)
	}
}
