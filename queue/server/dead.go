package server

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"
)

// DeadLetter is a message that was delivered as often as its queue allows.
type DeadLetter struct {
	ID         uuid.UUID `json:"id"`
	Deliveries int       `json:"deliveries"`
	Error      string    `json:"error,omitempty"`
	SentAt     time.Time `json:"sent_at"`
	DiedAt     time.Time `json:"died_at"`
	Priority   int       `json:"priority,omitempty"`
	Group      string    `json:"group,omitempty"`
	DedupeID   string    `json:"dedupe_id,omitempty"`
	Content
}

func (s *server) deadRoutes() {
	route(s, huma.Operation{
		OperationID: "list-dead", Method: http.MethodGet, Path: Prefix + "/{queue}/dead", Summary: "List dead letters, oldest first",
	}, s.dead)
	route(s, huma.Operation{
		OperationID: "redrive-dead", Method: http.MethodPost, Path: Prefix + "/{queue}/dead/redrive",
		Summary: "Put dead letters back into the queue; all without ids",
	}, s.redrive)
	route(s, huma.Operation{
		OperationID: "drop-dead", Method: http.MethodPost, Path: Prefix + "/{queue}/dead/drop",
		Summary: "Remove dead letters for good; all without ids",
	}, s.drop)
}

type deadInput struct {
	Path
	After string `query:"after" format:"uuid" doc:"Begin behind this dead letter."`
	Limit int    `query:"limit" default:"50" minimum:"1" maximum:"100"`
}

type deadOutput struct {
	Body struct {
		Dead []DeadLetter `json:"dead"`
	}
}

func (s *server) dead(ctx context.Context, in *deadInput) (*deadOutput, error) {
	after, _ := uuid.Parse(in.After) // its form is checked; none begins at the beginning
	all, err := s.of(ctx, in.Path).Dead(ctx, after, in.Limit)
	if err != nil {
		return nil, err
	}
	out := &deadOutput{}
	out.Body.Dead = []DeadLetter{}
	for _, d := range all {
		out.Body.Dead = append(out.Body.Dead, DeadLetter{
			d.ID, d.Deliveries, d.Error, d.SentAt, d.DiedAt, d.Priority, d.Group, d.DedupeID, contentOf(d.Body, d.ContentType, d.Headers),
		})
	}
	return out, nil
}

type someInput struct {
	Path
	Body struct {
		IDs []uuid.UUID `json:"ids,omitempty" maxItems:"1000"`
	}
}

func (s *server) redrive(ctx context.Context, in *someInput) (*countOutput, error) {
	n, err := s.of(ctx, in.Path).Redrive(ctx, in.Body.IDs...)
	return &countOutput{Count{n}}, err
}

func (s *server) drop(ctx context.Context, in *someInput) (*countOutput, error) {
	n, err := s.of(ctx, in.Path).Drop(ctx, in.Body.IDs...)
	return &countOutput{Count{n}}, err
}
