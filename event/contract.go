package event

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/avro"
)

// Contract ties an Avro record to the topic that carries it. It is made once
// per event type, by generated code.
type Contract struct {
	Topic  string
	Source string // the CloudEvents source of events of this contract
	Type   string // full name of the Avro record
	Text   string // the schema as it is registered
	Schema *avro.Schema
	// Fingerprint names Text in a row of the outbox: the first 8 bytes of its
	// SHA-256. The fingerprint Avro defines would not do, since it ignores
	// defaults and two versions that differ in one would be taken for the same.
	Fingerprint int64
}

// MustContract parses schema, the Avro JSON of a record. It panics on one that
// does not parse, which generated code cannot contain.
func MustContract(topic, source, schema string) *Contract {
	c, err := NewContract(topic, source, schema)
	if err != nil {
		panic(err)
	}
	return c
}

// NewContract parses schema, the Avro JSON of a record.
func NewContract(topic, source, schema string) (*Contract, error) {
	s, err := avro.Parse(schema)
	if err != nil {
		return nil, fmt.Errorf("contract for topic %s: %w", topic, err)
	}
	root := s.Root()
	if root.Type != "record" {
		return nil, fmt.Errorf("contract for topic %s: want an Avro record, got %s", topic, root.Type)
	}
	name := root.Name
	if root.Namespace != "" {
		name = root.Namespace + "." + root.Name
	}
	return &Contract{
		Topic: topic, Source: source, Type: name, Text: schema, Schema: s,
		Fingerprint: Fingerprint(schema),
	}, nil
}

// Fingerprint names a schema's text; see [Contract].
func Fingerprint(schema string) int64 {
	sum := sha256.Sum256([]byte(schema))
	return int64(binary.BigEndian.Uint64(sum[:8]))
}

// Subject is the registry's name for the contract, after TopicRecordName.
func (c *Contract) Subject() string { return c.Topic + "-" + c.Type }

// Envelope makes the envelope of a new event with body d that happens now,
// inheriting tenant and causes from ctx.
func (c *Contract) Envelope(ctx context.Context, d Data, now time.Time) Envelope {
	return c.envelope(ctx, NewID(), d, now)
}

// EnvelopeAt is Envelope for an event that will happen at due: its id carries
// that moment.
func (c *Contract) EnvelopeAt(ctx context.Context, d Data, due time.Time) Envelope {
	return c.envelope(ctx, idAt(due), d, due)
}

func (c *Contract) envelope(ctx context.Context, id uuid.UUID, d Data, at time.Time) Envelope {
	e := Envelope{
		ID: id, Source: c.Source, Type: c.Type, Subject: d.EventKey(),
		Time: at.UTC(), Sequence: d.EventSequence(),
	}
	e.inherit(ctx, id)
	return e
}
