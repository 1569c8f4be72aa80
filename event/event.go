// Package event is what every other part agrees on: the envelope an event
// travels in, its id, the chain of causes it belongs to and the contract its
// body obeys.
//
// It knows no database and no broker, so an application that only writes
// events links neither.
package event

import (
	"time"

	"github.com/google/uuid"
)

// ContentType is the media type of an Avro body in Confluent's wire format.
const ContentType = "application/avro"

// Envelope is the set of CloudEvents 1.0 attributes an event carries, plus
// the extensions the guarantees rest on.
type Envelope struct {
	ID            uuid.UUID // UUIDv7; the same in every copy of the event
	Source        string    // who published it, a URI reference such as "/orders"
	Type          string    // full name of the Avro record
	Subject       string    // aggregate id; also the record key
	Time          time.Time // when the fact happened, UTC
	Tenant        string    // whose data it is
	Sequence      int64     // version of the aggregate after the fact, from 1; 0 where the aggregate has none
	CorrelationID string    // the same along a whole chain of causes
	CausationID   string    // id of the event or request that led to this one
	TraceParent   string    // W3C trace context, may be empty
}

// Data is the body of a domain event. The types generated from a contract
// implement it.
type Data interface {
	// EventContract is the contract the type was generated from.
	EventContract() *Contract
	// EventKey is the aggregate's id. Events of one key keep their order.
	EventKey() string
	// EventSequence is the aggregate's version after the fact, 0 if the
	// contract names no such field.
	EventSequence() int64
}

// Position is where in the log a record stands.
type Position struct {
	Topic     string
	Partition int32
	Offset    int64
}

// Of is an event as a handler receives it: envelope, place and typed body.
type Of[E Data] struct {
	Envelope
	Position
	Data E
}
