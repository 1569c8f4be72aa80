package push

import "github.com/google/uuid"

// idSet remembers the last ids it was given. A relay that dies between
// publishing and noting it publishes again, with the same id on the same
// partition; no client should see that twice.
//
// There is no second rule by ce_sequence. Within a key the log is in commit
// order, so a lower number under a new id is not a copy: it is an aggregate
// restored from a backup, or two aggregates that share a subject. Dropping it
// would hide events in silence for as long as the process lives, and a client,
// which merges by sequence anyway, gains nothing.
type idSet struct {
	set  map[idKey]struct{}
	ring []idKey
	at   int
}

type idKey struct {
	slot int
	id   uuid.UUID
}

func newIDSet(limit int) *idSet {
	return &idSet{set: map[idKey]struct{}{}, ring: make([]idKey, 0, limit)}
}

// add reports false for an id it has.
func (s *idSet) add(slot int, id uuid.UUID) bool {
	k := idKey{slot, id}
	if _, ok := s.set[k]; ok {
		return false
	}
	s.set[k] = struct{}{}
	if len(s.ring) < cap(s.ring) {
		s.ring = append(s.ring, k)
		return true
	}
	delete(s.set, s.ring[s.at])
	s.ring[s.at] = k
	s.at = (s.at + 1) % len(s.ring)
	return true
}
