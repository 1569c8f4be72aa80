package webhook

import (
	"fmt"
	"net/http"
	"time"
)

// result is what is to be noted of a call.
type result struct {
	job     *job
	attempt Attempt
	state   DeliveryState
	nextAt  time.Time // if it is pending
	disable string    // the endpoint, for this reason, unless it was changed since
	since   int64     // the revision it was called by
}

// settle decides what comes of a call and leaves it to be noted. Until then the
// job is held, so that the table's row is not taken for another.
func (s *Sender) settle(j *job, t target, a answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, l := time.Now(), j.lane
	s.rota.done(j)
	s.held -= len(j.body)
	j.body = nil
	if a.cut {
		delete(l.held, j.id)
		return
	}
	s.meter.called(&a, j)
	s.judge(l, &a, now)
	s.results = append(s.results, s.resultOf(j, t, a, now))
	poke(s.record)
	if l.hungry(now) {
		poke(s.kick)
	}
	s.pump(now)
}

// judge is about the endpoint.
func (s *Sender) judge(l *lane, a *answer, now time.Time) {
	l.proven = a.lives()
	if a.ok() {
		if l.health != (health{}) {
			l.dirty = true
			l.more = true // what was left in the table when it failed
		}
		l.health.succeeded()
		l.pace.answered(l.inFlight)
		return
	}
	if !a.lives() {
		l.pace.overloaded(now)
	}
	was := l.health.openUntil
	l.health.failed(now, a.retryAfter, random)
	l.dirty = true
	if l.health.openUntil.After(now) && l.health.openUntil != was {
		s.held -= l.forget()
		s.resting[l] = true
	}
}

// resultOf is about the delivery.
func (s *Sender) resultOf(j *job, t target, a answer, now time.Time) result {
	r := result{job: j, attempt: a.Attempt, since: t.revision}
	l := j.lane
	switch {
	case a.ok():
		r.state = Delivered
		return r
	case a.Status == http.StatusGone:
		r.state = Failed
		r.disable = "it answered 410 Gone: it wants no more"
		return r
	}
	r.nextAt = now.Add(max(backoff(j.attempts+1, random), a.retryAfter))
	r.state = Pending
	if r.nextAt.Sub(j.begun) > s.cfg.Window {
		r.state = Failed
	}
	if failing := now.Sub(l.health.failingSince); failing >= s.cfg.DisableAfter {
		r.disable = fmt.Sprintf("every call has failed since %s", l.health.failingSince.UTC().Format(time.RFC3339))
	}
	return r
}
