// Package push delivers events from the log to browsers over Server-Sent
// Events, and over WebSockets.
//
// It promises that a client which comes back with the id of the last message
// it received continues exactly there: nothing of its channel is missing and
// nothing comes twice, also when it comes back to another process or to one
// that was restarted, as long as the messages in between are still in the
// [Hub]'s tail. Where they are not, the client is told so by a message named
// "reset", never left with a silent gap. Messages of one key keep the log's
// order, and no client slows another down: one that does not read is
// disconnected.
//
// What is only the newest of something, such as a position, is delivered with
// [Delivery.Latest]: whoever listens gets each, whoever comes back gets the
// newest of each name and not its history, and no flood of them pushes anything
// else out of the tail.
//
// Its limits: delivery is at least once, since a connection may break after
// the client read a message and before it noted the id, and since a copy that
// a relay published again long after the first may outlive the hub's memory of
// ids; the stable id in the data makes a copy known. The tail is memory, not
// history. The newest of each name is kept
// for as many names as [Config.Latest] allows; beyond, and of what the log held
// before a hub began to read it, a client that comes back hears with the next
// one. Every process reads every record of its topics. The package does
// not authenticate: the caller of [Hub.Serve] names the channel, and must
// derive it from the credential.
package push

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// Message is one SSE message.
type Message struct {
	Event string // the SSE event name; [EventReady] and [EventReset] are the hub's own
	Data  []byte // usually one line of JSON, see [JSON]; not changed after it was handed over
}

// Names of the messages a hub sends on its own account.
const (
	// EventReady opens the stream of a client that brought no cursor: load a
	// snapshot now, what follows comes after it or is already part of it.
	EventReady = "ready"
	// EventReset tells a client that messages are missing between its cursor
	// and the live stream: load the snapshot again.
	EventReset = "reset"
)

// Delivery is a message and the channel that gets it.
type Delivery struct {
	Channel string
	Message Message
	// Latest, unless empty, names what the message is the newest state of within
	// its channel: the next one of that name makes it worthless. It is delivered
	// as any other to those who listen, except that one that still waits for a
	// client far behind gives way to the next. For those who come back the
	// newest of the name is kept, outside of the tail.
	Latest string
}

// Route says what of a record goes to which channels. It must give the same
// deliveries in the same order whenever it is asked about the same record,
// since a cursor may point between two of them.
//
// After an error the record is logged, counted and skipped: a route that needs
// something which may be down for a while waits for it itself, under ctx. It
// runs on the one goroutine that reads the log, so waiting delays everybody.
type Route func(ctx context.Context, rec *kgo.Record, env *event.Envelope) ([]Delivery, error)

// line is what a message's data looks like to the client.
type line struct {
	ID            string    `json:"id"`
	Type          string    `json:"type"`
	Time          time.Time `json:"time"`
	Subject       string    `json:"subject"`
	Sequence      int64     `json:"sequence"`
	CorrelationID string    `json:"correlation_id"`
	Data          any       `json:"data"`
}

// JSON is the line of data of an event: the envelope's attributes that concern
// a browser, and data, which may be a [json.RawMessage].
func JSON(env *event.Envelope, data any) ([]byte, error) {
	b, err := json.Marshal(line{
		ID: env.ID.String(), Type: env.Type, Time: env.Time, Subject: env.Subject,
		Sequence: env.Sequence, CorrelationID: env.CorrelationID, Data: data,
	})
	if err != nil {
		return nil, fmt.Errorf("encode %s %s for a browser: %w", env.Type, env.ID, err)
	}
	return b, nil
}

// check refuses, besides what its message may not be, a delivery of a telemetry
// topic that a client would have to be told it missed.
func (d *Delivery) check(telemetry bool) error {
	if telemetry && d.Latest == "" {
		return errors.New("a delivery of a topic in LatestTopics names nothing it is the latest of")
	}
	return d.Message.check()
}

// check refuses what would break the stream's framing or pass for a message of
// the hub itself.
func (m Message) check() error {
	switch m.Event {
	case EventReady, EventReset:
		return fmt.Errorf("event name %q is the hub's own", m.Event)
	}
	if bytes.ContainsAny([]byte(m.Event), "\r\n\x00") {
		return fmt.Errorf("event name %q has a line break", m.Event)
	}
	return nil
}
