//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// pidFile is what a postmaster says about itself in postmaster.pid.
type pidFile struct {
	pid   int
	port  int
	ready bool
}

func pidPath(data string) string { return filepath.Join(data, "postmaster.pid") }

// readPID returns ok false for a file that is absent or makes no sense.
func readPID(data string) (f pidFile, ok bool) {
	raw, err := os.ReadFile(pidPath(data))
	if err != nil {
		return pidFile{}, false
	}
	return parsePID(string(raw))
}

// parsePID reads lines: 1 pid, 4 port, 8 status; while the server starts the
// later ones are missing.
func parsePID(text string) (f pidFile, ok bool) {
	lines := strings.Split(text, "\n")
	line := func(n int) string {
		if n > len(lines) {
			return ""
		}
		return strings.TrimSpace(lines[n-1])
	}
	pid, err := strconv.Atoi(line(1))
	if err != nil || pid <= 1 {
		return pidFile{}, false
	}
	port, _ := strconv.Atoi(line(4))
	return pidFile{pid: pid, port: port, ready: line(8) == "ready"}, true
}

// adopt takes over a server that a killed process left behind, where it
// listens on the wanted port and knows our password. Any other is stopped, so
// that a new one can start.
func (s *Server) adopt(ctx context.Context, at place) (bool, error) {
	left, ok := readPID(at.data())
	if !ok || !isPostmaster(left.pid, at.data()) {
		return false, discardPID(at.data(), left)
	}
	p := &process{pid: left.pid, data: at.data()}
	if s.fits(ctx, p, left) {
		s.proc, s.adopted = p, true
		if err := s.reload(); err != nil {
			return false, err
		}
		s.cfg.Logger.InfoContext(ctx, "adopted a server left running", "pid", p.pid, "port", s.port)
		return true, nil
	}
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("adopt server %d: %w", p.pid, err)
	}
	s.cfg.Logger.InfoContext(ctx, "stopping a server left running", "pid", p.pid, "port", left.port)
	if err := p.shutdown(ctx, s.cfg.StopTimeout); err != nil {
		return false, fmt.Errorf("stop server left running: %w", err)
	}
	return false, discardPID(at.data(), left)
}

// reload gives an adopted server the settings of today, as far as they can
// change without a restart.
func (s *Server) reload() error {
	if err := writeSettings(s.proc.data, s.owner, s.port, s.cfg.Settings); err != nil {
		return err
	}
	return s.proc.signal(syscall.SIGHUP)
}

// fits waits for a server that is still starting or recovering.
func (s *Server) fits(ctx context.Context, p *process, left pidFile) bool {
	if left.port == 0 || s.cfg.Port != 0 && s.cfg.Port != left.port {
		return false
	}
	s.port = left.port
	if err := s.awaitReady(ctx, p); err != nil {
		s.cfg.Logger.WarnContext(ctx, "a server left running does not answer", "pid", p.pid, "error", err)
		return false
	}
	if err := s.provision(ctx, p); err != nil {
		s.cfg.Logger.WarnContext(ctx, "a server left running does not let us in", "pid", p.pid, "error", err)
		return false
	}
	return true
}

// discardPID removes a pid file that would keep the new server from starting:
// garbage, or the number of a process that is there but is no server of this
// data (another program by now, or a dead child nobody collected). The file of
// a process that is gone stays for Postgres to judge, which also sees orphaned
// backends by the shared memory noted in it.
func discardPID(data string, f pidFile) error {
	if f.pid != 0 && errors.Is(syscall.Kill(f.pid, 0), syscall.ESRCH) {
		return nil
	}
	if err := os.Remove(pidPath(data)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("remove stale pid file: %w", err)
	}
	return nil
}
