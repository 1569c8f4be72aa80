//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const maxLogSize = 10 << 20

func (s *Server) logPath() string { return filepath.Join(s.cfg.Dir, "postgres.log") }

// launch starts a server of our own, on data that is made first if fresh.
func (s *Server) launch(ctx context.Context, at place, fresh bool) error {
	if err := s.portFree(ctx); err != nil {
		return err
	}
	major := 0
	if !fresh {
		var err error
		if major, err = dataMajor(at.data()); err != nil {
			return err
		}
	}
	bin, err := s.findBinaries(ctx, major)
	if err != nil {
		return err
	}
	if fresh {
		if err := s.initialise(ctx, bin, at); err != nil {
			return err
		}
	}
	synced := make(chan error, 1)
	go func() { synced <- ensureSynced(at) }()
	err = s.startServer(ctx, bin, at)
	return s.abandonOn(ctx, errors.Join(err, <-synced))
}

// abandonOn stops a server that Start will not hand out.
func (s *Server) abandonOn(ctx context.Context, err error) error {
	if err == nil || s.proc == nil {
		return err
	}
	return errors.Join(err, s.proc.shutdown(context.WithoutCancel(ctx), s.cfg.StopTimeout))
}

// startServer tries again where trying helps: another program took the port
// we found free, or backends of a killed server are just ending.
func (s *Server) startServer(ctx context.Context, bin binaries, at place) error {
	deadline := time.Now().Add(15 * time.Second)
	for {
		err := s.startOnce(ctx, bin, at)
		var died *diedError
		if !errors.As(err, &died) || ctx.Err() != nil {
			return err
		}
		if taken := s.portFree(ctx); taken != nil && s.cfg.Port != 0 {
			return taken
		}
		if !died.transient() || time.Now().After(deadline) {
			return err
		}
		if err := wait(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

func (s *Server) startOnce(ctx context.Context, bin binaries, at place) error {
	s.port = s.cfg.Port
	if s.port == 0 {
		var err error
		if s.port, err = freePort(ctx); err != nil {
			return err
		}
	}
	if err := writeSettings(at.data(), s.owner, s.port, s.cfg.Settings); err != nil {
		return err
	}
	log, err := openLog(s.logPath())
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	from, _ := log.Seek(0, io.SeekEnd)
	p, err := spawn(ctx, bin, at.data(), s.owner, log)
	if err != nil {
		return err
	}
	if err := s.awaitReady(ctx, p); err != nil {
		if gone, how := p.exited(); gone {
			return &diedError{how, tail(s.logPath(), from)}
		}
		s.proc = p
		return err
	}
	s.proc = p
	return s.provision(ctx, p)
}

// portFree tells a taken port before the server fails on it, with the error
// that says so.
func (s *Server) portFree(ctx context.Context) error {
	if s.cfg.Port == 0 {
		return nil
	}
	addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(s.cfg.Port))
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", addr)
	if err != nil {
		return fmt.Errorf("port for the server: %w", err)
	}
	return l.Close()
}

// awaitReady waits until the server has written that it accepts connections.
func (s *Server) awaitReady(ctx context.Context, p *process) error {
	err := poll(ctx, 2*time.Millisecond, func() (bool, error) {
		if gone, how := p.exited(); gone {
			return false, errors.Join(errors.New("server ended while starting"), how)
		}
		f, ok := readPID(p.data)
		return ok && f.pid == p.pid && f.ready, nil
	})
	if err != nil {
		return fmt.Errorf("wait for the server to accept connections: %w", err)
	}
	return nil
}

// openLog appends to the server's log, and sets a grown one aside first.
func openLog(path string) (*os.File, error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLogSize {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, fmt.Errorf("set server log aside: %w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open server log: %w", err)
	}
	return f, nil
}

// tail is what the server logged since offset from, at most 2 kB.
func tail(path string, from int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer func() { _ = f.Close() }()
	if end, err := f.Seek(0, io.SeekEnd); err == nil {
		from = max(from, end-2048)
	}
	raw, _ := io.ReadAll(io.NewSectionReader(f, from, 2048))
	return strings.TrimSpace(string(raw))
}

// diedError is a server that ended before it accepted connections.
type diedError struct {
	how error
	log string
}

func (e *diedError) Error() string {
	return fmt.Sprintf("server ended while starting: %v: %s", e.how, e.log)
}

func (e *diedError) Unwrap() error {
	if strings.Contains(e.log, "Address already in use") {
		return syscall.EADDRINUSE
	}
	return e.how
}

func (e *diedError) transient() bool {
	return errors.Is(e, syscall.EADDRINUSE) || strings.Contains(e.log, "pre-existing shared memory block")
}

func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
