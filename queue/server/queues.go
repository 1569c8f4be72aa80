package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waybillhq/waybill/queue"
)

// Settings of a queue. Times are in milliseconds.
type Settings struct {
	LeaseMS       int64  `json:"lease_ms,omitempty" minimum:"0" doc:"How long a worker has a message; 30000 if left out."`
	MaxDeliveries int    `json:"max_deliveries,omitempty" minimum:"0" doc:"Deliveries before a message is dead; 10 if left out."`
	TTLMS         int64  `json:"ttl_ms,omitempty" minimum:"0" doc:"How long a message may wait; for ever if left out."`
	MaxLength     int64  `json:"max_length,omitempty" minimum:"0" doc:"Messages past which sending is refused; a million if left out."`
	DedupeMS      int64  `json:"dedupe_ms,omitempty" minimum:"0" doc:"How long a dedupe_id is remembered; 600000 if left out."`
	KeepDeadMS    int64  `json:"keep_dead_ms,omitempty" minimum:"0" doc:"How long dead letters are kept; 30 days if left out."`
	DeadLetter    string `json:"dead_letter,omitempty" doc:"Another queue for the dead; the queue's own dead letters if left out."`
}

func (s Settings) settings() queue.Settings {
	return queue.Settings{
		Lease: ms(s.LeaseMS), MaxDeliveries: s.MaxDeliveries, TTL: ms(s.TTLMS), MaxLength: s.MaxLength,
		Dedupe: ms(s.DedupeMS), KeepDead: ms(s.KeepDeadMS), DeadLetter: s.DeadLetter,
	}
}

func ms(n int64) time.Duration { return time.Duration(min(n, 1<<40)) * time.Millisecond }

// Queue is a queue with its settings.
type Queue struct {
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
	Settings
}

// Stats is what is in a queue.
type Stats struct {
	Name        string     `json:"name"`
	Ready       int64      `json:"ready"`
	InFlight    int64      `json:"in_flight"`
	Delayed     int64      `json:"delayed"`
	Waiting     int64      `json:"waiting" doc:"Behind others of their group."`
	Redelivered int64      `json:"redelivered" doc:"Of all these, those that came back at least once."`
	Dead        int64      `json:"dead"`
	MaxLength   int64      `json:"max_length"`
	Oldest      *time.Time `json:"oldest" doc:"When the oldest message was sent that may be delivered."`
}

// Path names a queue.
type Path struct {
	Queue string `path:"queue" doc:"The queue's name." maxLength:"100"`
}

func (s *server) of(ctx context.Context, p Path) *queue.Queue {
	return s.handles.of(tenantOf(ctx), p.Queue)
}

func (s *server) queueRoutes() {
	route(s, huma.Operation{
		OperationID: "create-queue", Method: http.MethodPost, Path: Prefix,
		Summary: "Create a queue, or give one new settings", Errors: []int{409},
	}, s.create)
	route(s, huma.Operation{
		OperationID: "remove-queue", Method: http.MethodDelete, Path: Prefix + "/{queue}",
		Summary: "Remove a queue that is empty", Errors: []int{409},
	}, s.remove)
	route(s, huma.Operation{OperationID: "list-queues", Method: http.MethodGet, Path: Prefix, Summary: "List queues"}, s.list)
	route(s, huma.Operation{
		OperationID: "queue-stats", Method: http.MethodGet, Path: Prefix + "/{queue}", Summary: "Count what is in a queue",
	}, s.stats)
	route(s, huma.Operation{
		OperationID: "purge-queue", Method: http.MethodPost, Path: Prefix + "/{queue}/purge",
		Summary: "Remove all messages of a queue, also those with workers",
	}, s.purge)
}

type createInput struct {
	Body struct {
		Name string `json:"name"`
		Settings
	}
}

func (s *server) create(ctx context.Context, in *createInput) (*struct{}, error) {
	return nil, queue.DeclareWithin(ctx, s.DB, s.most, tenantOf(ctx), in.Body.Name, in.Body.settings())
}

func (s *server) remove(ctx context.Context, in *Path) (*struct{}, error) {
	return nil, queue.Remove(ctx, s.DB, tenantOf(ctx), in.Queue)
}

type listOutput struct {
	Body struct {
		Queues []Queue `json:"queues"`
	}
}

func (s *server) list(ctx context.Context, _ *struct{}) (*listOutput, error) {
	all, err := queue.List(ctx, s.DB, tenantOf(ctx))
	if err != nil {
		return nil, err
	}
	out := &listOutput{}
	out.Body.Queues = []Queue{}
	for _, i := range all {
		out.Body.Queues = append(out.Body.Queues, Queue{Name: i.Name, CreatedAt: i.CreatedAt, Settings: Settings{
			LeaseMS: i.Lease.Milliseconds(), MaxDeliveries: i.MaxDeliveries, TTLMS: i.TTL.Milliseconds(), MaxLength: i.MaxLength,
			DedupeMS: i.Dedupe.Milliseconds(), KeepDeadMS: i.KeepDead.Milliseconds(), DeadLetter: i.DeadLetter,
		}})
	}
	return out, nil
}

type statsOutput struct{ Body Stats }

func (s *server) stats(ctx context.Context, in *Path) (*statsOutput, error) {
	st, err := s.of(ctx, *in).Stats(ctx)
	if err != nil {
		return nil, err
	}
	return &statsOutput{Stats{
		st.Name, st.Ready, st.InFlight, st.Delayed, st.Waiting, st.Redelivered, st.Dead, st.MaxLength, st.Oldest,
	}}, nil
}

// Count is how many messages something happened to.
type Count struct {
	Count int64 `json:"count"`
}

type countOutput struct{ Body Count }

func (s *server) purge(ctx context.Context, in *Path) (*countOutput, error) {
	n, err := s.of(ctx, *in).Purge(ctx)
	return &countOutput{Count{n}}, err
}

func (s *server) document() error {
	doc, err := json.Marshal(s.huma.OpenAPI())
	if err != nil {
		return fmt.Errorf("queue server: write OpenAPI document: %w", err)
	}
	s.mux.HandleFunc("GET "+Prefix+"/openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(doc) // the client left: nobody to tell
	})
	return nil
}
