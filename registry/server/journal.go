package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
)

// writeTimeout bounds a write from its decision to its verdict.
const writeTimeout = 10 * time.Second

var errNotRunning = errors.New("the registry is not running")

// verdict is what reading back says of a write.
type verdict struct {
	left  int // records not read back yet
	holds bool
	done  chan struct{}
}

// follow takes in the topic until ctx ends.
func (s *Server) follow(ctx context.Context, client *kgo.Client) error {
	for {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		for _, f := range fetches.Errors() {
			if lost(f.Err) {
				return fmt.Errorf("read topic %s: %w", s.cfg.Topic, f.Err)
			}
			s.cfg.Logger.WarnContext(ctx, "reading the topic of the registry, trying again", "topic", s.cfg.Topic, "error", f.Err)
		}
		s.takeIn(fetches.Records())
	}
}

// lost is an error that trying again does not mend: the topic is gone, or not
// what was read before.
func lost(err error) bool {
	var answer *kerr.Error
	var data *kgo.ErrDataLoss
	return errors.As(err, &data) || errors.As(err, &answer) && !answer.Retriable
}

func (s *Server) takeIn(records []*kgo.Record) {
	s.state.mu.Lock()
	defer s.state.mu.Unlock()
	for _, r := range records {
		holds := s.state.apply(r)
		if mark, ok := readStamp(r); ok {
			s.judge(mark.token, holds)
		}
	}
}

func (s *Server) judge(token string, holds bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.awaiting[token]
	if v == nil {
		return
	}
	v.left--
	v.holds = v.holds && holds
	if v.left == 0 {
		close(v.done)
	}
}

// catchUp reads what is there, by waiting for a record of its own, mends what
// a writer that died left behind, and says ready.
func (s *Server) catchUp(ctx context.Context) error {
	if _, err := s.commit(ctx, stamp{after: -1, intent: change}, draft{key: noopKey()}); err != nil {
		return fmt.Errorf("read topic %s to its end: %w", s.cfg.Topic, err)
	}
	if err := s.write(ctx, keepHighest); err != nil {
		return err
	}
	if err := s.repair(ctx); err != nil {
		return err
	}
	close(s.ready)
	return nil
}

// keepHighest writes the highest id down where no schema does any longer.
func keepHighest(st *state) ([]draft, error) {
	if _, there := st.byID[st.highest]; there || st.highest == 0 {
		return nil, nil
	}
	return []draft{{highestKey(), encode(noopValue{st.highest})}}, nil
}

// commit writes drafts in one go, reads them back and says whether all hold.
// The token of mark is given here.
func (s *Server) commit(ctx context.Context, mark stamp, drafts ...draft) (bool, error) {
	s.mu.Lock()
	client := s.client
	s.writes++
	mark.token = fmt.Sprintf("%s/%d", s.name, s.writes)
	v := &verdict{left: len(drafts), holds: true, done: make(chan struct{})}
	s.awaiting[mark.token] = v
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.awaiting, mark.token)
	}()
	if client == nil {
		return false, errNotRunning
	}
	records := make([]*kgo.Record, len(drafts))
	for i, d := range drafts {
		records[i] = &kgo.Record{Topic: s.cfg.Topic, Key: d.key, Value: d.value, Headers: []kgo.RecordHeader{mark.header()}}
	}
	if err := client.ProduceSync(ctx, records...).FirstErr(); err != nil {
		return false, fmt.Errorf("write topic %s: %w", s.cfg.Topic, err)
	}
	select {
	case <-v.done:
		return v.holds, nil
	case <-s.over:
		return false, errNotRunning
	case <-ctx.Done():
		return false, fmt.Errorf("read back topic %s: %w", s.cfg.Topic, ctx.Err())
	}
}

// write has decide look at the state and say what to change, until that holds;
// nothing to change is a decision too. One write at a time: what the next one
// decides on must have been read back.
func (s *Server) write(ctx context.Context, decide func(*state) ([]draft, error)) error {
	if drafts, _, err := s.decide(decide); err != nil || len(drafts) == 0 {
		return err
	}
	// A client that hangs up must not leave us in doubt about our own record.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	select {
	case s.writing <- struct{}{}:
		defer func() { <-s.writing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		drafts, after, err := s.decide(decide)
		if err != nil || len(drafts) == 0 {
			return err
		}
		holds, err := s.commit(ctx, stamp{after: after, intent: change}, drafts...)
		if err != nil || holds {
			return err
		}
		if err := s.repair(ctx); err != nil {
			return err
		}
	}
}

func (s *Server) decide(decide func(*state) ([]draft, error)) (drafts []draft, after int64, err error) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	drafts, err = decide(s.state)
	return drafts, s.state.last, err
}

// repair writes dirty places again, so that the last record under each key is
// what holds there.
func (s *Server) repair(ctx context.Context) error {
	for {
		d, after, ok := s.dirtyPlace()
		if !ok {
			return nil
		}
		mark := stamp{after: after, intent: keep}
		if d.value == nil {
			mark.intent = void
		}
		if _, err := s.commit(ctx, mark, d); err != nil {
			return fmt.Errorf("write a refused record's place again: %w", err)
		}
	}
}

func (s *Server) dirtyPlace() (d draft, after int64, ok bool) {
	s.state.mu.RLock()
	defer s.state.mu.RUnlock()
	for _, at := range s.state.dirty {
		return draft{at.key, s.state.current(at)}, s.state.last, true
	}
	return draft{}, 0, false
}
