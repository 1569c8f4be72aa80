package webhook

import (
	"container/list"
	"time"
)

// rota decides what is sent next: tenants in turn by deficit round-robin, and
// within a tenant its endpoints in turn. It is bounded in all, by tenant, and by
// endpoint; retries, and calls of endpoints that have not just shown that they
// answer, share a second budget, so that they never take all there is.
//
// It is guarded by its user.
type rota struct {
	most, second, perTenant int

	inFlight, againInFlight int
	shares                  map[string]*share
	ring                    list.List // of *share that may have something to send
	short                   []*share  // that wait for room in the second budget
}

// share is a tenant's.
type share struct {
	tenant   string
	lanes    []*lane
	turn     int
	deficit  int
	inFlight int
	place    *list.Element // in the ring
	short    bool
}

// quantum is what a tenant may send in its turn, in units of job.cost.
const quantum = 8

func newRota(most, second, perTenant int) *rota {
	return &rota{most: most, second: second, perTenant: perTenant, shares: map[string]*share{}}
}

func (r *rota) add(l *lane) {
	s := r.shares[l.tenant]
	if s == nil {
		s = &share{tenant: l.tenant}
		r.shares[l.tenant] = s
	}
	l.share = s
	s.lanes = append(s.lanes, l)
}

// remove takes a lane out; what is under way of it comes back to done.
func (r *rota) remove(l *lane) {
	s := l.share
	for i, other := range s.lanes {
		if other == l {
			s.lanes = append(s.lanes[:i], s.lanes[i+1:]...)
			break
		}
	}
	r.tidy(s)
}

func (r *rota) tidy(s *share) {
	if len(s.lanes) > 0 || s.inFlight > 0 || r.shares[s.tenant] != s {
		return
	}
	r.rest(s)
	delete(r.shares, s.tenant)
}

// ready says that a tenant may have something to send.
func (r *rota) ready(s *share) {
	if s.place == nil {
		s.place = r.ring.PushBack(s)
	}
}

func (r *rota) rest(s *share) {
	if s.place != nil {
		r.ring.Remove(s.place)
		s.place, s.deficit = nil, 0
	}
}

// next is the job whose turn it is, counted as under way; nil if nothing may be
// sent now.
func (r *rota) next(now time.Time) *job {
	for r.inFlight < r.most && r.ring.Len() > 0 {
		s := r.ring.Front().Value.(*share) //nolint:forcetypeassert // nothing else is put in
		l, from := r.pick(s, now)
		if l == nil {
			r.rest(s)
			continue
		}
		j := (*from)[0]
		if s.deficit < j.cost() {
			s.deficit += quantum
			r.ring.MoveToBack(s.place)
			continue
		}
		s.deficit -= j.cost()
		*from = (*from)[1:]
		s.turn++
		l.turn++
		j.again = !j.fresh || !l.proven
		r.inFlight++
		s.inFlight++
		l.inFlight++
		if j.again {
			r.againInFlight++
		}
		return j
	}
	return nil
}

func (r *rota) pick(s *share, now time.Time) (*lane, *[]*job) {
	if s.inFlight >= r.perTenant {
		return nil, nil
	}
	for i := range s.lanes {
		l := s.lanes[(s.turn+i)%len(s.lanes)]
		from, short := l.take(now, r.againInFlight < r.second)
		if from != nil {
			return l, from
		}
		if short && !s.short {
			s.short = true
			r.short = append(r.short, s)
		}
	}
	return nil, nil
}

// done says that a job is no longer under way.
func (r *rota) done(j *job) {
	s := j.lane.share
	r.inFlight--
	s.inFlight--
	j.lane.inFlight--
	r.ready(s)
	if j.again {
		r.againInFlight--
		for _, waiting := range r.short {
			waiting.short = false
			r.ready(waiting)
		}
		r.short = r.short[:0]
	}
	r.tidy(s)
}
