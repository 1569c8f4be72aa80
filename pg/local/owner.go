//go:build unix

package local

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// owner is the unprivileged user the server runs as when we are root, which
// Postgres refuses. A nil owner is ourselves.
type owner struct {
	name     string
	uid, gid uint32
}

func serverOwner() (*owner, error) {
	if os.Geteuid() != 0 {
		return nil, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uerr := strconv.ParseUint(u.Uid, 10, 32)
		gid, gerr := strconv.ParseUint(u.Gid, 10, 32)
		if uerr == nil && gerr == nil && uid != 0 {
			return &owner{name, uint32(uid), uint32(gid)}, nil
		}
	}
	return nil, fmt.Errorf("postgres does not run as root, and there is no user postgres or nobody to run it as")
}

func (o *owner) attr() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if o != nil {
		attr.Credential = &syscall.Credential{Uid: o.uid, Gid: o.gid, Groups: []uint32{}}
	}
	return attr
}

func (o *owner) give(path string) error {
	if o == nil {
		return nil
	}
	if err := os.Chown(path, int(o.uid), int(o.gid)); err != nil {
		return fmt.Errorf("give %s to %s: %w", path, o.name, err)
	}
	return nil
}

// giveOpen gives a file away whatever its name has come to mean.
func (o *owner) giveOpen(f *os.File) error {
	if o == nil {
		return nil
	}
	if err := f.Chown(int(o.uid), int(o.gid)); err != nil {
		return fmt.Errorf("give %s to %s: %w", f.Name(), o.name, err)
	}
	return nil
}

// reaches tells whether the owner may pass every folder down to path.
func (o *owner) reaches(path string) bool {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return false
	}
	for dir := real; ; dir = filepath.Dir(dir) {
		if !o.passes(dir) {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}

func (o *owner) passes(dir string) bool {
	info, err := os.Stat(dir)
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	mode := info.Mode().Perm()
	switch {
	case st.Uid == o.uid:
		return mode&0o100 != 0
	case st.Gid == o.gid:
		return mode&0o010 != 0
	}
	return mode&0o001 != 0
}

// cleanEnv is our environment without what would steer Postgres behind our
// back. With TZ set, initdb need not search for the machine's time zone.
func cleanEnv() []string {
	env := []string{"LC_ALL=C", "TZ=UTC"}
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "PG") && !strings.HasPrefix(kv, "LC_") && !strings.HasPrefix(kv, "TZ=") {
			env = append(env, kv)
		}
	}
	return env
}
