package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
)

// Outcome is how far one of an endpoint's latest deliveries is.
type Outcome struct {
	Event    uuid.UUID `json:"event"`
	State    string    `json:"state" enum:"pending,delivered,failed"`
	Attempts int       `json:"attempts" doc:"Since it was last begun; a pending one with attempts is failing."`
	At       time.Time `json:"at" doc:"Of the latest attempt; of being stored if there was none."`
}

// Recent is how an endpoint's latest deliveries went.
type Recent struct {
	Endpoint   uuid.UUID `json:"endpoint"`
	Deliveries []Outcome `json:"deliveries" doc:"Thirty at most, that of the latest event first."`
}

// recentRoutes are what a page asks for again and again.
func (s *server) recentRoutes() {
	route(s, huma.Operation{
		OperationID: "list-recent-webhooks", Method: http.MethodGet, Path: Prefix + "/recent", Summary: "Show how the latest deliveries of each endpoint went",
	}, s.recent)
	route(s, huma.Operation{
		OperationID: "get-webhook-backlog", Method: http.MethodGet, Path: Prefix + "/endpoints/{endpoint}/backlog", Summary: "Count what an endpoint has not got",
	}, s.backlog)
}

type recentOutput struct {
	Body struct {
		Recent []Recent `json:"recent" doc:"Of the endpoints that were sent something."`
	}
}

func (s *server) recent(ctx context.Context, _ *struct{}) (*recentOutput, error) {
	all, err := s.Store.Recent(ctx, tenantOf(ctx))
	if err != nil {
		return nil, err
	}
	out := &recentOutput{}
	out.Body.Recent = []Recent{}
	for _, o := range all {
		n := len(out.Body.Recent)
		if n == 0 || out.Body.Recent[n-1].Endpoint != o.Endpoint {
			out.Body.Recent, n = append(out.Body.Recent, Recent{Endpoint: o.Endpoint}), n+1
		}
		last := &out.Body.Recent[n-1]
		last.Deliveries = append(last.Deliveries, Outcome{o.EventID, string(o.State), o.Attempts, o.At})
	}
	return out, nil
}

type backlogOutput struct {
	Body struct {
		Pending int64 `json:"pending" doc:"Waiting for their first attempt or the next; 10000 stands for more."`
		Failed  int64 `json:"failed" doc:"Given up, to be replayed; 10000 stands for more."`
	}
}

func (s *server) backlog(ctx context.Context, in *Path) (*backlogOutput, error) {
	b, err := s.Store.Backlog(ctx, tenantOf(ctx), in.Endpoint)
	out := &backlogOutput{}
	out.Body.Pending, out.Body.Failed = b.Pending, b.Failed
	return out, err
}
