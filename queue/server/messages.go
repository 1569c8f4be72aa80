package server

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/queue"
)

// NewMessage is a message to send: Body, any JSON, or Base64, any bytes.
type NewMessage struct {
	Body        json.RawMessage   `json:"body,omitempty" doc:"Any JSON value."`
	Base64      []byte            `json:"base64,omitempty" doc:"Instead of body: bytes, in base64."`
	ContentType string            `json:"content_type,omitempty" doc:"Of base64; body is application/json."`
	Headers     map[string]string `json:"headers,omitempty"`
	Priority    int               `json:"priority,omitempty" minimum:"0" maximum:"9" doc:"Higher first."`
	Group       string            `json:"group,omitempty" doc:"Messages of a group are delivered one at a time, in order."`
	DedupeID    string            `json:"dedupe_id,omitempty" doc:"A second message with it is not taken while it is remembered."`
	DelayMS     int64             `json:"delay_ms,omitempty" minimum:"0"`
	TTLMS       int64             `json:"ttl_ms,omitempty" minimum:"0"`
}

func (m NewMessage) message() queue.Message {
	out := queue.Message{
		Body: m.Base64, ContentType: m.ContentType, Headers: m.Headers, Priority: m.Priority, Group: m.Group,
		DedupeID: m.DedupeID, Delay: ms(m.DelayMS), TTL: ms(m.TTLMS),
	}
	if m.Body != nil {
		out.Body, out.ContentType = m.Body, queue.ContentTypeJSON
	}
	return out
}

// Content is a message's body as it is shown: as JSON if it is some.
type Content struct {
	Body        json.RawMessage   `json:"body,omitempty" doc:"If the content is JSON."`
	Base64      []byte            `json:"base64,omitempty" doc:"If it is not."`
	ContentType string            `json:"content_type"`
	Headers     map[string]string `json:"headers,omitempty"`
}

func contentOf(body []byte, kind string, headers map[string]string) Content {
	c := Content{ContentType: kind, Headers: headers}
	if kind == queue.ContentTypeJSON && json.Valid(body) {
		c.Body = body
	} else {
		c.Base64 = body
	}
	return c
}

// Delivery is a message with a worker.
type Delivery struct {
	ID         uuid.UUID `json:"id"`
	Receipt    string    `json:"receipt" doc:"Names this delivery to ack, nack and extend."`
	Deliveries int       `json:"deliveries" doc:"This one included."`
	LeaseUntil time.Time `json:"lease_until"`
	SentAt     time.Time `json:"sent_at"`
	Priority   int       `json:"priority,omitempty"`
	Group      string    `json:"group,omitempty"`
	DedupeID   string    `json:"dedupe_id,omitempty"`
	Content
}

func (s *server) messageRoutes() {
	route(s, huma.Operation{
		OperationID: "send-messages", Method: http.MethodPost, Path: Prefix + "/{queue}/messages", Errors: []int{429},
		Summary: "Send messages, all or none", Description: "429 when the queue is full.",
	}, s.send)
	route(s, huma.Operation{
		OperationID: "receive-messages", Method: http.MethodPost, Path: Prefix + "/{queue}/receive",
		Summary: "Lease messages, waiting for the first one",
	}, s.receive)
	route(s, huma.Operation{
		OperationID: "ack-messages", Method: http.MethodPost, Path: Prefix + "/{queue}/ack", Errors: []int{409}, Summary: "Say that messages are done",
	}, s.ack)
	route(s, huma.Operation{
		OperationID: "nack-messages", Method: http.MethodPost, Path: Prefix + "/{queue}/nack", Errors: []int{409}, Summary: "Give messages back",
	}, s.nack)
	route(s, huma.Operation{
		OperationID: "extend-leases", Method: http.MethodPost, Path: Prefix + "/{queue}/extend", Errors: []int{409}, Summary: "Keep messages for longer",
	}, s.extend)
}

type sendInput struct {
	Path
	Body struct {
		Messages []NewMessage `json:"messages" minItems:"1" maxItems:"1000"`
	}
}

// SentMessage is what became of a message.
type SentMessage struct {
	ID        uuid.UUID `json:"id"`
	Duplicate bool      `json:"duplicate,omitempty" doc:"It was not taken: id is of the message sent with the same dedupe_id before."`
}

type sendOutput struct {
	Body struct {
		Sent []SentMessage `json:"sent"`
	}
}

func (s *server) send(ctx context.Context, in *sendInput) (*sendOutput, error) {
	messages := make([]queue.Message, len(in.Body.Messages))
	for i, m := range in.Body.Messages {
		messages[i] = m.message()
	}
	sent, err := s.of(ctx, in.Path).Send(ctx, s.DB, messages...)
	if err != nil {
		return nil, err
	}
	out := &sendOutput{}
	for _, m := range sent {
		out.Body.Sent = append(out.Body.Sent, SentMessage(m))
	}
	return out, nil
}

type receiveInput struct {
	Path
	Body struct {
		Max     int   `json:"max,omitempty" minimum:"1" maximum:"1000" doc:"1 if left out."`
		WaitMS  int64 `json:"wait_ms,omitempty" minimum:"0" maximum:"20000"`
		LeaseMS int64 `json:"lease_ms,omitempty" minimum:"0" doc:"Instead of the queue's."`
	}
}

type receiveOutput struct {
	Body struct {
		Messages []Delivery `json:"messages"`
	}
}

func (s *server) receive(ctx context.Context, in *receiveInput) (*receiveOutput, error) {
	opts := queue.ReceiveOptions{Max: in.Body.Max, Wait: ms(in.Body.WaitMS), Lease: ms(in.Body.LeaseMS)}
	if who := tenantOf(ctx); opts.Wait > 0 {
		if s.waiting.take(who) {
			defer s.waiting.give(who)
		} else {
			opts.Wait = 0
		}
	}
	q := s.of(ctx, in.Path)
	got, err := q.Receive(ctx, opts)
	if err != nil {
		return nil, err
	}
	out := &receiveOutput{}
	out.Body.Messages = []Delivery{}
	var receipts []string
	for _, d := range got {
		receipts = append(receipts, d.Receipt)
		out.Body.Messages = append(out.Body.Messages, Delivery{
			d.ID, d.Receipt, d.Deliveries, d.LeaseUntil, d.SentAt, d.Priority, d.Group, d.DedupeID, contentOf(d.Body, d.ContentType, d.Headers),
		})
	}
	if ctx.Err() != nil { // the client left; its messages need not wait for their leases
		return nil, q.Release(context.WithoutCancel(ctx), s.DB, receipts...)
	}
	return out, nil
}

// Receipts name deliveries.
type Receipts struct {
	Receipts []string `json:"receipts" minItems:"1" maxItems:"1000"`
}

type ackInput struct {
	Path
	Body Receipts
}

func (s *server) ack(ctx context.Context, in *ackInput) (*struct{}, error) {
	return nil, s.of(ctx, in.Path).Ack(ctx, s.DB, in.Body.Receipts...)
}

type nackInput struct {
	Path
	Body struct {
		Receipts
		DelayMS int64  `json:"delay_ms,omitempty" minimum:"0"`
		Reason  string `json:"reason,omitempty" doc:"Kept for whoever looks at the dead letters."`
	}
}

func (s *server) nack(ctx context.Context, in *nackInput) (*struct{}, error) {
	return nil, s.of(ctx, in.Path).Nack(ctx, s.DB, ms(in.Body.DelayMS), in.Body.Reason, in.Body.Receipts.Receipts...)
}

type extendInput struct {
	Path
	Body struct {
		Receipts
		LeaseMS int64 `json:"lease_ms" minimum:"1000" doc:"From now."`
	}
}

func (s *server) extend(ctx context.Context, in *extendInput) (*struct{}, error) {
	return nil, s.of(ctx, in.Path).Extend(ctx, s.DB, ms(in.Body.LeaseMS), in.Body.Receipts.Receipts...)
}
