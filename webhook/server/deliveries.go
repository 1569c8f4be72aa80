package server

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/webhook"
)

// Delivery is an event on its way to an endpoint.
type Delivery struct {
	Event      uuid.UUID         `json:"event" doc:"The header webhook-id."`
	Type       string            `json:"type"`
	State      string            `json:"state" enum:"pending,delivered,failed"`
	Attempts   int               `json:"attempts" doc:"Since it was last begun."`
	StoredAt   time.Time         `json:"stored_at"`
	FinishedAt *time.Time        `json:"finished_at"`
	NextAt     *time.Time        `json:"next_at" doc:"When the next attempt is due; null if there is none."`
	Log        []webhook.Attempt `json:"log" doc:"The latest attempts, oldest first."`
}

func deliveryOf(d webhook.Delivery) Delivery {
	return Delivery{d.EventID, d.Type, string(d.State), d.Attempts, d.StoredAt, d.FinishedAt, d.NextAt, d.Log}
}

// EventPath names a delivery.
type EventPath struct {
	Path
	Event uuid.UUID `path:"event"`
}

func (s *server) deliveryRoutes() {
	one := Prefix + "/endpoints/{endpoint}"
	route(s, huma.Operation{
		OperationID: "list-webhook-deliveries", Method: http.MethodGet, Path: one + "/deliveries", Summary: "List deliveries, that of the latest event first",
	}, s.deliveries)
	route(s, huma.Operation{
		OperationID: "get-webhook-delivery", Method: http.MethodGet, Path: one + "/deliveries/{event}", Summary: "Show a delivery with its attempts",
	}, s.delivery)
	route(s, huma.Operation{
		OperationID: "resend-webhook", Method: http.MethodPost, Path: one + "/deliveries/{event}/resend", DefaultStatus: http.StatusAccepted,
		Summary: "Send an event again, or for the first time", Errors: []int{409},
	}, s.resend)
	route(s, huma.Operation{
		OperationID: "replay-webhooks", Method: http.MethodPost, Path: one + "/replay", DefaultStatus: http.StatusAccepted,
		Summary: "Send many events again, a page at a time", Errors: []int{409},
	}, s.replay)
	route(s, huma.Operation{
		OperationID: "ping-webhook-endpoint", Method: http.MethodPost, Path: one + "/ping", DefaultStatus: http.StatusAccepted,
		Summary: "Send an event of type " + webhook.PingType + "; its delivery tells what came of it", Errors: []int{409},
	}, s.ping)
	route(s, huma.Operation{
		OperationID: "get-webhook-event", Method: http.MethodGet, Path: Prefix + "/events/{event}", Summary: "Show an event as it is sent",
	}, s.body)
}

type deliveriesInput struct {
	Path
	State  string    `query:"state" enum:"pending,delivered,failed"`
	Before uuid.UUID `query:"before" doc:"Events before this one: the last of the page before."`
	Since  time.Time `query:"since" doc:"Of events since."`
	Limit  int       `query:"limit" minimum:"1" maximum:"500" default:"50"`
}

type deliveriesOutput struct {
	Body struct {
		Deliveries []Delivery `json:"deliveries"`
	}
}

func (s *server) deliveries(ctx context.Context, in *deliveriesInput) (*deliveriesOutput, error) {
	all, err := s.Store.Deliveries(ctx, tenantOf(ctx), in.Endpoint, webhook.DeliveryFilter{
		State: webhook.DeliveryState(in.State), Before: in.Before, Since: in.Since, Limit: in.Limit,
	})
	out := &deliveriesOutput{}
	out.Body.Deliveries = []Delivery{}
	for _, d := range all {
		out.Body.Deliveries = append(out.Body.Deliveries, deliveryOf(d))
	}
	return out, err
}

type deliveryOutput struct{ Body Delivery }

func (s *server) delivery(ctx context.Context, in *EventPath) (*deliveryOutput, error) {
	d, err := s.Store.Delivery(ctx, tenantOf(ctx), in.Endpoint, in.Event)
	return &deliveryOutput{deliveryOf(d)}, err
}

func (s *server) resend(ctx context.Context, in *EventPath) (*struct{}, error) {
	err := s.Store.Resend(ctx, tenantOf(ctx), in.Endpoint, in.Event)
	s.Wake()
	return nil, err
}

type replayInput struct {
	Path
	Body struct {
		Failed bool      `json:"failed,omitempty" doc:"What was given up; else all that the endpoint wants, delivered or not."`
		Since  time.Time `json:"since,omitempty" doc:"Of events since; required unless failed."`
		Until  time.Time `json:"until,omitempty"`
		After  uuid.UUID `json:"after,omitempty" doc:"The next of the page before."`
		Limit  int       `json:"limit,omitempty" minimum:"1" maximum:"10000" doc:"Events looked at; 10000 if left out."`
	}
}

type replayOutput struct {
	Body struct {
		Count int64      `json:"count" doc:"Put on their way."`
		Next  *uuid.UUID `json:"next" doc:"Ask again with this as after; null: that was all."`
	}
}

func (s *server) replay(ctx context.Context, in *replayInput) (*replayOutput, error) {
	b := in.Body
	page, err := s.Store.Replay(ctx, tenantOf(ctx), in.Endpoint, webhook.Replay{Failed: b.Failed, Since: b.Since, Until: b.Until, After: b.After, Limit: b.Limit})
	out := &replayOutput{}
	out.Body.Count = page.Count
	if page.Next != uuid.Nil {
		out.Body.Next = &page.Next
	}
	s.Wake()
	return out, err
}

type pingOutput struct {
	Body struct {
		Event uuid.UUID `json:"event"`
	}
}

func (s *server) ping(ctx context.Context, in *Path) (*pingOutput, error) {
	id, err := s.Store.Ping(ctx, tenantOf(ctx), in.Endpoint)
	out := &pingOutput{}
	out.Body.Event = id
	s.Wake()
	return out, err
}

type bodyOutput struct {
	Body struct {
		ContentType string          `json:"content_type"`
		JSON        json.RawMessage `json:"json,omitempty" doc:"If it is JSON."`
		Base64      string          `json:"base64,omitempty" doc:"Else."`
	}
}

func (s *server) body(ctx context.Context, in *struct {
	Event uuid.UUID `path:"event"`
},
) (*bodyOutput, error) {
	b, contentType, err := s.Store.Body(ctx, tenantOf(ctx), in.Event)
	out := &bodyOutput{}
	out.Body.ContentType = contentType
	if json.Valid(b) {
		out.Body.JSON = b
	} else {
		out.Body.Base64 = base64.StdEncoding.EncodeToString(b)
	}
	return out, err
}
