package webhook

import (
	"context"
	"time"
)

// idleAfter is when a lane with nothing to send is given back.
const idleAfter = 30 * time.Second

// fetches brings what is to be sent into memory, until ctx ends: it looks for
// endpoints when it is woken and every Config.Every, and asks for more as lanes
// get hungry.
func (s *Sender) fetches(ctx context.Context) {
	var freshAt, againAt time.Time // when to look next
	said := false
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		woken := false
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			woken = true
			// What is handed over now commits in a moment, and so do others.
			if !sleep(ctx, 2*time.Millisecond) {
				return
			}
		case <-s.kick:
		case <-tick.C:
		}
		err := s.fetch(ctx, woken, &freshAt, &againAt)
		if err != nil && !said && ctx.Err() == nil {
			s.log.WarnContext(ctx, "webhooks are not fetched; tried again until they are", "error", err)
		}
		said = err != nil
		pause := s.cfg.Every
		if err != nil && !sleep(ctx, time.Second) {
			return
		}
		tick.Reset(pause)
	}
}

// lookShare bounds what looking for endpoints costs: one part of so many.
const lookShare = 5

func (s *Sender) fetch(ctx context.Context, woken bool, freshAt, againAt *time.Time) error {
	began := time.Now()
	s.mu.Lock()
	s.revive(began)
	ready := !s.fence.IsZero()
	s.mu.Unlock()
	if !ready {
		return nil
	}
	if woken || !began.Before(*freshAt) {
		if err := s.discover(ctx, true); err != nil {
			return err
		}
		*freshAt = time.Now().Add(max(s.cfg.Every, lookShare*time.Since(began)))
	}
	if began := time.Now(); !began.Before(*againAt) {
		if err := s.discover(ctx, false); err != nil {
			return err
		}
		*againAt = time.Now().Add(max(5*s.cfg.Every, 2*lookShare*time.Since(began)))
	}
	for {
		more, err := s.claim(ctx)
		if err != nil {
			return err
		}
		if !more {
			break
		}
	}
	return s.sweep(ctx)
}

// sweep gives back lanes that have had nothing for a while, or are to go.
func (s *Sender) sweep(ctx context.Context) error {
	s.mu.Lock()
	now := time.Now()
	var left []laneKey
	for _, l := range s.lanes {
		idle := now.Sub(l.usedAt) > idleAfter
		if len(l.held) == 0 && l.inFlight == 0 && !l.dirty && (l.leaving || idle) {
			left = append(left, l.laneKey)
			s.drop(l)
		}
	}
	owner := s.id
	s.mu.Unlock()
	return s.release(ctx, owner, left)
}
