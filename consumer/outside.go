package consumer

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// What a group that is run elsewhere, as package consumer/transform does, has in
// common with the groups here.

// ReadEnvelope reads a record's headers. If they cannot be read, the error is
// [ErrUnreadable], and the envelope's id and type are right all the same.
func ReadEnvelope(rec *kgo.Record) (event.Envelope, error) { return envelope(rec) }

// Admits tells whether the filter lets a record through.
func (f Filter) Admits(rec *kgo.Record) bool { return f.admits(rec) }

// Check finds patterns that match nothing.
func (f Filter) Check() error { return f.check() }

// OutOfReach tells an error of a database or a registry that cannot be asked
// now: the default of Config.Infrastructure.
func OutOfReach(err error) bool { return outOfReach(err) }

// Verdict is what a policy says of an event that failed where nothing is parked.
type Verdict struct {
	Class string
	Again bool          // it is tried again after Wait
	Wait  time.Duration // less up to half by chance
	Drop  bool          // else: passed over for good,
	Stop  bool          // or its partition stops; with neither it is dead
}

// Judge says what becomes of an event that failed n times, the last with err. A
// rule counts the tries of Try alone; an error that none knows follows otherwise,
// under the class of its kind.
func (p Policy) Judge(err error, n int, otherwise Rule) Verdict {
	r := otherwise
	r.class = classOf(err)
	for _, named := range p {
		if named.knows(err) {
			r = named
			break
		}
	}
	v := Verdict{Class: r.class}
	switch {
	case n < r.try.n && !As[*permanentError]()(err):
		v.Again, v.Wait = true, r.try.after(n)
	case r.end == endDrop:
		v.Drop = true
	case r.end == endStop:
		v.Stop = true
	}
	return v
}

// CheckUnparked is the policy's check where nothing can be parked.
func (p Policy) CheckUnparked() error {
	errs := []error{p.check()}
	for _, r := range p {
		if r.park.n > 0 {
			errs = append(errs, fmt.Errorf("rule %q of the policy parks, and there is no table to park in: use Try alone", r.class))
		}
	}
	return errors.Join(errs...)
}
