package webhook

import (
	"context"
	"errors"
	"time"
)

// idleAfter is when a lane with nothing to send is given back.
const idleAfter = 30 * time.Second

// lookShare bounds what looking for endpoints costs: one part of so many of the
// time, and half as much for retries.
const lookShare = 5

// looks is when to look for endpoints next.
type looks struct {
	fresh, again time.Time
	soonest      time.Time // for first tries, however often it is woken
}

// fetches brings what is to be sent into memory, until ctx ends: it looks for
// endpoints when it is woken and every Config.Every, and asks for more as lanes
// get hungry.
func (s *Sender) fetches(ctx context.Context) {
	var at looks
	said := false
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.wake:
			// What is handed over now commits in a moment, and so do others.
			if !sleep(ctx, 2*time.Millisecond) {
				return
			}
			at.fresh = at.soonest
		case <-s.kick:
		case <-tick.C:
		}
		err := s.fetch(ctx, &at)
		if err != nil && !said && ctx.Err() == nil {
			s.log.WarnContext(ctx, "webhooks are not fetched; tried again until they are", "error", err)
		}
		if said = err != nil; said && !sleep(ctx, time.Second) {
			return
		}
		tick.Reset(min(max(time.Until(at.fresh), time.Millisecond), s.cfg.Every))
	}
}

func (s *Sender) fetch(ctx context.Context, at *looks) error {
	began := time.Now()
	s.mu.Lock()
	s.revive(began)
	leased := !s.fence.IsZero()
	s.mu.Unlock()
	if !leased {
		return nil
	}
	if !began.Before(at.fresh) {
		if err := s.discover(ctx, true); err != nil {
			return err
		}
		now := time.Now()
		at.soonest = now.Add(lookShare * now.Sub(began))
		at.fresh = now.Add(max(s.cfg.Every, lookShare*now.Sub(began)))
	}
	if began := time.Now(); !began.Before(at.again) {
		if err := s.discover(ctx, false); err != nil {
			return err
		}
		now := time.Now()
		at.again = now.Add(max(5*s.cfg.Every, 2*lookShare*now.Sub(began)))
	}
	for more := true; more; {
		var err error
		if more, err = s.claim(ctx); err != nil {
			return err
		}
	}
	return s.sweep(ctx)
}

// sweep gives back lanes that have had nothing for a while, or are to go, once
// how they are is noted.
func (s *Sender) sweep(ctx context.Context) error {
	s.mu.Lock()
	now := time.Now()
	var left []laneKey
	dirty := false
	for _, l := range s.lanes {
		idle := now.Sub(l.usedAt) > idleAfter
		switch {
		case len(l.held) > 0 || l.inFlight > 0:
		case l.dirty:
			dirty = true
		case l.leaving || idle:
			left = append(left, l.laneKey)
			s.drop(l)
		}
	}
	owner := s.id
	s.mu.Unlock()
	err := s.release(ctx, owner, left)
	if dirty {
		err = errors.Join(err, s.noteHealth(ctx))
	}
	return err
}
