package event

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// Names of the record headers an envelope travels in: CloudEvents 1.0, Kafka
// binary mode.
const (
	HeaderSpecVersion   = "ce_specversion"
	HeaderID            = "ce_id"
	HeaderSource        = "ce_source"
	HeaderType          = "ce_type"
	HeaderSubject       = "ce_subject"
	HeaderTime          = "ce_time"
	HeaderTenant        = "ce_tenant"
	HeaderSequence      = "ce_sequence"
	HeaderCorrelationID = "ce_correlationid"
	HeaderCausationID   = "ce_causationid"
	HeaderTraceParent   = "traceparent"
	HeaderContentType   = "content-type"

	// SpecVersion is the version of CloudEvents all envelopes are of.
	SpecVersion = "1.0"
)

// Headers calls put with every header of the envelope, in a fixed order.
// Attributes without a value are left out.
func (e *Envelope) Headers(put func(name, value string)) {
	put(HeaderSpecVersion, SpecVersion)
	put(HeaderID, e.ID.String())
	put(HeaderSource, e.Source)
	put(HeaderType, e.Type)
	put(HeaderSubject, e.Subject)
	put(HeaderTime, e.Time.UTC().Format(time.RFC3339Nano))
	put(HeaderTenant, e.Tenant)
	if e.Sequence != 0 {
		put(HeaderSequence, strconv.FormatInt(e.Sequence, 10))
	}
	optional := func(name, value string) {
		if value != "" {
			put(name, value)
		}
	}
	optional(HeaderCorrelationID, e.CorrelationID)
	optional(HeaderCausationID, e.CausationID)
	optional(HeaderTraceParent, e.TraceParent)
	put(HeaderContentType, ContentType)
}

// ReadHeaders reads an envelope from the n headers of a record that header
// yields. Headers it does not know are passed over; one it knows with a value
// that cannot be read is an error naming the header.
//
// A record of a stranger, whose ce_id is no UUIDv7, gets a [ForeignID]; one
// with no id at all gets it from fallback, which should name the record's
// place in the log. A missing ce_time is recordTime.
func ReadHeaders(n int, header func(i int) (name string, value []byte), recordTime time.Time, fallback string) (Envelope, error) {
	e := Envelope{Time: recordTime.UTC()}
	foreign := fallback
	for i := range n {
		name, value := header(i)
		if name == HeaderID {
			id, err := uuid.ParseBytes(value)
			if err == nil && id.Version() == 7 {
				e.ID = id
			} else {
				foreign = string(value)
			}
			continue
		}
		if err := e.setHeader(name, value); err != nil {
			return e, fmt.Errorf("header %s=%.64q: %w", name, value, err)
		}
	}
	if e.ID == uuid.Nil {
		e.ID = ForeignID(e.Source, foreign, e.Time)
	}
	return e, nil
}

func (e *Envelope) setHeader(name string, value []byte) (err error) {
	switch name {
	case HeaderSpecVersion:
		if string(value) != SpecVersion {
			return fmt.Errorf("want %s", SpecVersion)
		}
	case HeaderSource:
		e.Source = string(value)
	case HeaderType:
		e.Type = string(value)
	case HeaderSubject:
		e.Subject = string(value)
	case HeaderTime:
		if e.Time, err = time.Parse(time.RFC3339Nano, string(value)); err != nil {
			return errors.New("want a time as of RFC 3339") // the parser's own words repeat the value, however long
		}
	case HeaderTenant:
		e.Tenant = string(value)
	case HeaderSequence:
		if e.Sequence, err = strconv.ParseInt(string(value), 10, 64); err != nil {
			return errors.New("want a whole number")
		}
	case HeaderCorrelationID:
		e.CorrelationID = string(value)
	case HeaderCausationID:
		e.CausationID = string(value)
	case HeaderTraceParent:
		e.TraceParent = string(value)
	}
	return err
}
