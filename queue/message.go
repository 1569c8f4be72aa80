package queue

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"
)

// Bounds of what is sent.
const (
	MaxBody     = 1 << 20  // bytes of a body
	MaxHeaders  = 16 << 10 // bytes of all headers, as JSON
	MaxBatch    = 1000     // messages of one Send, Receive or Ack
	MaxPriority = 9
	maxText     = 255      // bytes of a group, a dedupe id, a tenant
	maxBatchMem = 16 << 20 // bytes of the bodies of one Send
)

// ContentTypeJSON is what JSON bodies are marked with.
const ContentTypeJSON = "application/json"

// Message is what is sent. Only Body is required, and it may be empty.
type Message struct {
	Body        []byte
	ContentType string            // "application/octet-stream" if empty
	Headers     map[string]string // text without NUL
	// Priority is 0 to 9, higher first. Low ones wait as long as there are
	// higher ones.
	Priority int
	// Group, if any: its messages are delivered one at a time, in order.
	Group string
	// DedupeID, if any: a second message with it is not taken while the queue
	// remembers it.
	DedupeID string
	Delay    time.Duration // before it may be delivered, at most 30 days
	TTL      time.Duration // instead of the queue's
}

// Delivery is a message in a worker's hands.
type Delivery struct {
	ID          uuid.UUID
	Body        []byte
	ContentType string
	Headers     map[string]string
	Priority    int
	Group       string
	DedupeID    string
	SentAt      time.Time
	Deliveries  int       // this one included
	Receipt     string    // names this delivery to Ack, Nack and Extend
	LeaseUntil  time.Time // by the database's clock
	order       int64
}

// Sent is what became of a message.
type Sent struct {
	ID uuid.UUID
	// Duplicate: it was not taken; ID is of the message that was sent with
	// the same dedupe id before.
	Duplicate bool
}

func (m *Message) check() error {
	var errs []error
	if len(m.Body) > MaxBody {
		errs = append(errs, fmt.Errorf("%w body of %d bytes: at most %d; keep large things elsewhere and send where they are", ErrInvalid, len(m.Body), MaxBody))
	}
	return errors.Join(append(errs,
		withinNumber("priority", int64(m.Priority), 0, MaxPriority),
		within("delay", m.Delay, 0, maxDelay),
		within("ttl", m.TTL, 0, maxTTL),
		checkText("group", m.Group), checkText("dedupe id", m.DedupeID), checkText("content type", m.ContentType),
	)...)
}

// checkText refuses what the database cannot keep as it is.
func checkText(what, s string) error {
	if len(s) > maxText || !utf8.ValidString(s) || strings.ContainsRune(s, 0) {
		return fmt.Errorf("%w %s %.64q: want at most %d bytes of text without NUL", ErrInvalid, what, s, maxText)
	}
	return nil
}

// headers are JSON text, nil if there are none.
func (m *Message) headers() (*string, error) {
	if len(m.Headers) == 0 {
		return nil, nil
	}
	for name, v := range m.Headers {
		if name == "" || !utf8.ValidString(name+v) || strings.ContainsRune(name+v, 0) {
			return nil, fmt.Errorf("%w header %.64q: want a name, and text without NUL", ErrInvalid, name)
		}
	}
	b, err := json.Marshal(m.Headers)
	if err != nil {
		return nil, fmt.Errorf("%w headers: %w", ErrInvalid, err)
	}
	if len(b) > MaxHeaders {
		return nil, fmt.Errorf("%w headers of %d bytes: at most %d", ErrInvalid, len(b), MaxHeaders)
	}
	text := string(b)
	return &text, nil
}
