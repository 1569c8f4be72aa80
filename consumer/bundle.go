package consumer

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"github.com/waybillhq/waybill/pg"
)

// serve does the work of ready lanes until there will be no more.
func (s *session) serve() {
	for b := s.gather(); b != nil; b = s.gather() {
		if b.alone {
			s.leave(b.lanes[0], s.step(b.lanes[0]))
		} else {
			s.handleAll(b)
		}
		s.exit(b.parts)
		s.unthrottle()
	}
}

func (s *session) exit(parts []*partition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range parts {
		p.running--
		p.hush()
	}
}

// item is an event of a bundle.
type item struct {
	l *lane
	m *message
}

// attempted is a bundle under way.
type attempted struct {
	parts []*partition
	stuck map[*lane]time.Duration // lanes that must not go on now, and how long they wait
}

// going are the items that may still be tried: neither their lane is stuck nor
// their partition given up.
func (a *attempted) going(items []item) []item {
	return slices.DeleteFunc(slices.Clone(items), func(it item) bool {
		_, stuck := a.stuck[it.l]
		return stuck || it.l.p.over()
	})
}

// handleAll handles the events of a bundle, together if that succeeds.
func (s *session) handleAll(b *bundle) {
	a := &attempted{parts: b.parts, stuck: map[*lane]time.Duration{}}
	items := s.readable(a, s.items(b))
	s.together(a, items)
	for _, l := range b.lanes {
		s.leave(l, a.stuck[l])
	}
}

// items lists a bundle's events, those of a tenant next to each other where a
// change of tenant costs something.
func (s *session) items(b *bundle) []item {
	s.mu.Lock()
	defer s.mu.Unlock()
	order := make([]int, len(b.lanes))
	for i := range order {
		order[i] = i
	}
	if s.policies.Load() {
		slices.SortStableFunc(order, func(i, j int) int {
			return cmp.Compare(b.lanes[i].queue[0].env.Tenant, b.lanes[j].queue[0].env.Tenant)
		})
	}
	items := make([]item, 0, b.events)
	for _, i := range order {
		for _, m := range b.lanes[i].queue[:b.take[i]] {
			items = append(items, item{b.lanes[i], m})
		}
	}
	return items
}

// together handles items in one transaction, and if that fails in smaller
// parts, until an event that fails stands alone: only then is it counted
// against it. The parts are done in order, and a lane whose event is not done
// with does not go on.
func (s *session) together(a *attempted, items []item) {
	for items = a.going(items); len(items) > 1; items = a.going(items) {
		release := s.takeTurn(items[0].l.p)
		n, bad, err := s.commitAll(items)
		release()
		if err == nil {
			s.restored()
			if n < len(items) { // it took long: other workers may have the rest
				for _, it := range items[n:] {
					a.stuck[it.l] = 0
				}
			}
			return
		}
		if parts := s.split(items, bad, err); parts != nil {
			for _, part := range parts {
				s.together(a, part)
			}
			return
		}
	}
	if len(items) == 1 {
		l := items[0].l
		if wait, done := s.handle(l, items[0].m); !done {
			a.stuck[l] = wait
		}
	}
}

// split decides what becomes of items whose transaction failed. It is nil if
// those that are still going shall be tried as they are. Conflicts are nobody's
// fault, and neither is an outage; if the database answers, it may all the same be
// one of the events that loses its connection.
func (s *session) split(items []item, bad int, err error) [][]item {
	var fenced *fencedError
	switch p := items[0].l.p; {
	case errors.As(err, &fenced):
		for _, lost := range fenced.lost {
			s.cede(lost)
		}
		return nil
	case slices.ContainsFunc(items, func(it item) bool { return it.l.p.over() }):
		return nil
	case s.isOutage(err) && s.reach(p.ctx) != nil:
		s.outage(err)
		s.outlast(items)
		return nil
	case pg.Conflict(err):
		s.contended()
	}
	s.meter.splits.Inc()
	if bad < 0 {
		return [][]item{items[:len(items)/2], items[len(items)/2:]}
	}
	parts := [][]item{items[:bad], items[bad : bad+1], items[bad+1:]}
	return slices.DeleteFunc(parts, func(part []item) bool { return len(part) == 0 })
}

// outlast waits until the database answers, or one of the items' partitions is
// given up: its next owner waits for this bundle to let it go.
func (s *session) outlast(items []item) {
	parts := make([]*partition, len(items))
	for i, it := range items {
		parts[i] = it.l.p
	}
	for n := 0; !anyOver(parts); n++ {
		if s.reach(parts[0].ctx) == nil {
			s.restored()
			return
		}
		pause(parts[0].stop, min(backoff(outagePause, outageMax, n), overLook))
	}
}

// overLook is how often it is looked whether a partition was given up.
const overLook = 250 * time.Millisecond

// commitAll tries items in one transaction. n of them are then done with; an
// error was brought about by the one numbered bad, as far as that is known.
func (s *session) commitAll(items []item) (n, bad int, err error) {
	t := &trial{ms: make([]*message, len(items)), of: make([]*partition, len(items))}
	for i, it := range items {
		t.ms[i], t.of[i] = it.m, it.l.p
	}
	if err := s.apply(t, nil); err != nil {
		return 0, t.bad, err
	}
	s.finishAll(items[:t.n])
	for i, m := range t.ms[:t.n] {
		s.meter.count(m.route.typ, t.what[i], 1)
	}
	return t.n, -1, nil
}

// finishAll records that events, the first ones of their lanes, are done with.
func (s *session) finishAll(items []item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := 0; i < len(items); {
		l, n := items[i].l, 0
		for ; i < len(items) && items[i].l == l; i++ {
			n++
		}
		s.finishLocked(l, n)
	}
}
