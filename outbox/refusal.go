package outbox

import (
	"errors"
	"fmt"

	"github.com/waybillhq/waybill/event"
)

// Why an event is refused; compare with errors.Is.
var (
	ErrUnknownType   = errors.New("contract was not given to outbox.New; add it there")
	ErrMissingTenant = errors.New("no tenant; set it with event.WithTenant on the context given to Add")
	ErrMissingKey    = errors.New("no key; fill the field its contract names as key")
	ErrInvalid       = errors.New("value does not fit its schema")
	ErrTooLong       = errors.New("attribute is too long")
)

// Refusal is the error of an event that was not accepted into the outbox.
type Refusal struct {
	Type   string // of the event
	Key    string // its aggregate, where it had one
	Reason error
}

func (r *Refusal) Error() string {
	if r.Key == "" {
		return fmt.Sprintf("outbox refuses %s: %v", r.Type, r.Reason)
	}
	return fmt.Sprintf("outbox refuses %s of %q: %v", r.Type, r.Key, r.Reason)
}

func (r *Refusal) Unwrap() error { return r.Reason }

// TooLargeError is the reason an event's body was too large.
type TooLargeError struct {
	Size, Limit int // bytes of Avro
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("body is %d bytes, the limit is %d: store the bulk elsewhere and send a reference, or raise outbox.Config.MaxBytes and the broker's message.max.bytes",
		e.Size, e.Limit)
}

// maxAttribute bounds each envelope attribute, in bytes, so that headers can
// never make a record too large for the broker.
const maxAttribute = 4096

func checkEnvelope(e *event.Envelope) error {
	switch {
	case e.Tenant == "":
		return ErrMissingTenant
	case e.Subject == "":
		return ErrMissingKey
	}
	for name, v := range map[string]string{
		"tenant": e.Tenant, "key": e.Subject, "correlation id": e.CorrelationID,
		"causation id": e.CausationID, "traceparent": e.TraceParent,
	} {
		if len(v) > maxAttribute {
			return fmt.Errorf("%w: %s has %d bytes, the limit is %d", ErrTooLong, name, len(v), maxAttribute)
		}
	}
	return nil
}
