//go:build unix

package local

import (
	"context"
	"fmt"
	"time"
)

// Stop ends the server and returns once it has ended: transactions that are
// open are rolled back. When an orderly end takes longer than
// Config.StopTimeout, or ctx ends, the server is told to end at once. Further
// calls return what the first did.
func (s *Server) Stop(ctx context.Context) error {
	s.once.Do(func() {
		s.endWatch()
		if s.stopErr = s.proc.shutdown(ctx, s.cfg.StopTimeout); s.stopErr != nil {
			s.stopErr = fmt.Errorf("stop local postgres in %s: %w", s.cfg.Dir, s.stopErr)
		}
		s.finish(nil)
		s.unlock()
	})
	return s.stopErr
}

// Detach lets go of the server and leaves it running, for the next Start to
// adopt. Done is closed, since nobody watches any more.
func (s *Server) Detach() {
	s.once.Do(func() {
		s.endWatch()
		s.finish(nil)
		s.unlock()
	})
}

func (s *Server) endWatch() {
	close(s.ending)
	s.watched.Wait()
}

// watch looks for the server's end. A look is one system call, and works for
// an adopted server, whose end no one tells us, as for a child.
func (s *Server) watch() {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.ending:
			return
		case <-tick.C:
		}
		if gone, how := s.proc.exited(); gone {
			s.finish(s.unexpected(how))
			return
		}
	}
}

func (s *Server) unexpected(how error) error {
	if how == nil {
		return fmt.Errorf("local postgres in %s ended unexpectedly; see %s", s.cfg.Dir, s.logPath())
	}
	return fmt.Errorf("local postgres in %s ended unexpectedly: %w; see %s", s.cfg.Dir, how, s.logPath())
}

func (s *Server) finish(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
	default:
		s.err = err
		close(s.done)
	}
}
