package webhook

import (
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/webhook/sign"
)

// laneKey names an endpoint.
type laneKey struct {
	tenant   string
	endpoint uuid.UUID
}

// target is where a lane leads.
type target struct {
	url      string
	revision int64
	keys     []timedKey
}

type timedKey struct {
	sign.Key
	until time.Time // zero: for ever
}

// signing are the keys that are good at a moment.
func (t *target) signing(at time.Time) []sign.Key {
	var out []sign.Key
	for _, k := range t.keys {
		if k.until.IsZero() || at.Before(k.until) {
			out = append(out, k.Key)
		}
	}
	return out
}

// job is a delivery in memory.
type job struct {
	lane        *lane
	id          uuid.UUID
	fresh       bool
	keyed       bool // others of its key wait for it
	attempts    int  // made before
	begun       time.Time
	contentType string
	body        []byte
	again       bool // it counts against the second budget
}

// cost is what a job takes of its tenant's turn: one, and one for each 4 KiB.
func (j *job) cost() int { return 1 + len(j.body)>>12 }

// lane is an endpoint that this sender has: what is to be sent to it, and how it
// does.
type lane struct {
	laneKey
	share    *share
	target   target
	pace     pace
	health   health
	proven   bool // its last call succeeded
	leaving  bool // it is given up; nothing more is begun
	dirty    bool // its health is not noted yet
	fresh    []*job
	again    []*job
	held     map[uuid.UUID]bool // in memory: queued, under way, or not noted yet
	inFlight int
	turn     int
	more     bool      // there may be more in the table
	full     bool      // too much waits for it
	usedAt   time.Time // it last had something
}

// take finds the lane's next job, or nil. second tells whether there is room in
// the second budget; short is true if that alone was missing.
func (l *lane) take(now time.Time, second bool) (from *[]*job, short bool) {
	limit := int(l.pace.limit)
	if l.health.broken() {
		limit = 1 // the probe
	}
	if l.leaving || l.inFlight >= limit || now.Before(l.health.openUntil) {
		return nil, false
	}
	// Of four turns one is a retry's: they get on, and stand in nobody's way.
	from = &l.fresh
	if len(l.fresh) == 0 || len(l.again) > 0 && l.turn%4 == 3 {
		from = &l.again
	}
	if len(*from) == 0 {
		return nil, false
	}
	if !second && (from == &l.again || !l.proven) {
		if from == &l.again && len(l.fresh) > 0 && l.proven {
			return &l.fresh, false
		}
		return nil, true
	}
	return from, false
}

// wanted is how many jobs should be in memory.
func (l *lane) wanted() int {
	if l.health.broken() {
		return 2
	}
	return 4*int(l.pace.limit) + 4
}

func (l *lane) queued() int { return len(l.fresh) + len(l.again) }

// hungry is true if the table should be asked for more.
func (l *lane) hungry(now time.Time) bool {
	return l.more && !l.leaving && l.queued() <= l.wanted()/2 && !now.Before(l.health.openUntil)
}

// forget drops what is queued: it stays in the table.
func (l *lane) forget() (bytes int) {
	for _, q := range []*[]*job{&l.fresh, &l.again} {
		for _, j := range *q {
			delete(l.held, j.id)
			bytes += len(j.body)
		}
		*q = nil
	}
	l.more = true
	return bytes
}
