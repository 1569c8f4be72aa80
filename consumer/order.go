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

// failedInPlace lets a partition that keeps its order wait for an event that
// failed. Where its rule ends the tries by a drop or a stop, so be it; it is
// never dead, for then all behind it would have to be parked.
func (s *session) failedInPlace(l *lane, m *message, r Rule, err error) time.Duration {
	if l.attempts >= r.try.n+r.park.n {
		switch r.end {
		case endStop:
			s.stopAt(l, m, err)
			return 0
		case endDrop:
			s.dropMessage(l, m, r, err)
			return 0
		case endDead:
		}
	}
	s.logFailure("event failed, its partition waits for it", m, err, l.attempts)
	return backoff(s.cfg.Retry.Pause, s.cfg.Retry.ParkMax, l.attempts-1)
}
