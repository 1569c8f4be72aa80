package consumer

import (
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Ordering is which events a group handles one after another.
type Ordering int

const (
	// ByKey keeps the order of each key. An event that fails stops its key.
	ByKey Ordering = iota
	// ByPartition keeps the order of each partition. An event that fails stops
	// its partition: it is tried again, ever more seldom, and never parked, for
	// then all behind it would have to be.
	ByPartition
	// Unordered keeps none. An event that fails is parked alone.
	Unordered
)

// wholePartition is the lane of all records of a partition. It is no text, so
// that a record's key will hardly be the same; were it, they would share a lane.
const wholePartition = "\xff\xfepartition"

// lane is the key of the lane that a record goes to.
func (c Config) lane(rec *kgo.Record) string {
	switch {
	case c.Delivery == AtMostOnce || c.Ordering == ByPartition:
		return wholePartition
	case c.Ordering == Unordered:
		return "\xff\xfe" + strconv.FormatInt(rec.Offset, 10)
	}
	return string(rec.Key)
}

// held tells a lane of a whole partition that must wait, since events of it are
// parked: the group kept the order of keys before.
func (s *session) held(l *lane) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.key == wholePartition && s.cfg.Delivery != AtMostOnce && len(l.p.parked) > 0
}

// failedInPlace lets a partition that keeps its order wait for an event whose
// tries in place are used up. Parked ones are made in place too, and there is no
// death: all behind it would have to be parked with it.
func (s *session) failedInPlace(l *lane, m *message, r Rule, err error) time.Duration {
	wait, rests := r.rest(max(l.attempts-r.try.n, 1), time.Since(l.since))
	switch {
	case rests:
	case r.end == endStop:
		s.stopAt(l, m, err)
		return 0
	case r.end == endDrop:
		s.dropMessage(l, m, r, err)
		return 0
	default:
		wait = backoff(s.cfg.Retry.Pause, s.cfg.Retry.ParkMax, l.attempts-1)
	}
	s.logFailure("event failed, its partition waits for it", m, err, l.attempts)
	return wait
}
