// Package saga watches work that several services do together by events, and
// guards it: that what was begun is finished, or undone.
//
// Nobody commands here. Services react to each other's events as they would
// without this package; a [Saga] says which events they are, in what order the
// steps come, by when, and how each is undone. An [Observer] reads those events
// and keeps a record of each instance. A step that does not come about in time
// is asked for by an event, waybill.saga.StepOverdue, which services react to as
// to any other; what stays undone after that needs an operator, who has it asked
// for again ([Resume]) or says that it was done by hand ([Skip]).
//
// It promises:
//
//   - the state of an instance is a function of which events were seen, which
//     asks were made and what operators did: events of different topics may come
//     in any order, late and twice;
//   - an event is recorded once, in the transaction that marks it as handled,
//     and what is published because of it commits with the record;
//   - an instance is never completed and compensated at once. One that turned
//     back stays turned back, and a step that is done after that has to be
//     undone as well, however late it comes;
//   - nothing stands still in silence: a step has a deadline, an ask that is not
//     heard is repeated, and the last one is followed by an operator's alarm;
//   - no step is called overdue while the observer still reads its way to where
//     the topics ended at the deadline.
//
// Limits: it sees what was published. A service that does something and tells
// nobody, or is slower than its relay, looks the same as one that did nothing.
// Deadlines run by the database's clock from when an event was seen, and an
// overdue step is told within a few seconds of being due.
package saga

import (
	"time"
)

// Saga is what several services do together. Name, Start and Steps are
// required.
//
// The key of an instance is the subject of its events: all of them must have
// the same. Beside it stands the round, an attempt at the whole from 1 on, which
// the functions given to [On] tell.
type Saga struct {
	Name  string // lower-case letters, digits and -; part of ids and labels
	Start Events // any of which begins a round
	Abort Events // any of which, from outside, has what is done undone
	Steps []Step // in the order they are done in; undone in the other
}

// Step is one service's part.
type Step struct {
	Name   string // lower-case letters, digits and -
	Done   Events // any of which says that it is done; required
	Failed Events // any of which says that it will not be done in this round
	Undone Events // any of which says that it was undone; none: there is nothing to undo

	// Within is by when it should be done after the step before it was, or
	// undone after that became its turn; default 1 min, none if below 0.
	Within time.Duration
	// Asks is how often it is asked for when it is overdue, before an operator
	// is; default 5.
	Asks int
	// Pause is between the first ask and the second, and twice that after each,
	// at most an hour; default Within.
	Pause time.Duration
}

// Bounds of what is declared.
const (
	maxSteps  = 50
	maxName   = 60
	pauseMost = time.Hour

	defaultWithin = time.Minute
	defaultAsks   = 5
)
