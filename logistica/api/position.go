package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/tracking"
)

// Positions knows where orders' couriers are. Both are tracking.ErrNotFound
// where there is nothing to be seen.
type Positions interface {
	Position(ctx context.Context, tenant, order uuid.UUID) (tracking.Position, error)
	ForOrder(ctx context.Context, order uuid.UUID) (tracking.Position, error)
	Trail(ctx context.Context, tenant, order uuid.UUID) ([]tracking.Fix, error)
}

// Position is where an order's courier is, as its merchant sees it.
type Position struct {
	TrackedPosition
	CourierID uuid.UUID  `json:"courier_id" format:"uuid"`
	SpeedMps  *float32   `json:"speed_mps,omitempty" doc:"Metres a second, where the device knows."`
	AccuracyM *float32   `json:"accuracy_m,omitempty" doc:"Radius in metres that holds the position with 68 %, where the device knows."`
	ETA       *time.Time `json:"eta,omitempty" doc:"When the customer may expect the order; left out where that cannot be said."`
	Trail     []TrailFix `json:"trail,omitempty" doc:"The way so far, oldest first, at most 500 fixes; with trail=true."`
}

// TrackedPosition is where a courier is, as the public sees it.
type TrackedPosition struct {
	Lat        float64   `json:"lat" doc:"Degrees."`
	Lng        float64   `json:"lng" doc:"Degrees."`
	HeadingDeg *float32  `json:"heading_deg,omitempty" doc:"Degrees clockwise from north, where the device knows."`
	FixTime    time.Time `json:"fix_time" doc:"When the courier was there."`
}

// TrailFix is where a courier was.
type TrailFix struct {
	Lat     float64   `json:"lat"`
	Lng     float64   `json:"lng"`
	FixTime time.Time `json:"fix_time"`
}

type positionInput struct {
	OrderPath
	Trail bool `query:"trail" doc:"With the way so far."`
}

type positionOutput struct {
	Status int
	Body   *Position
}

// positionRoutes are there where positions are kept.
func (s *service) positionRoutes() {
	if s.Positions == nil {
		return
	}
	route(s, huma.Operation{
		OperationID: "get-position", Method: http.MethodGet, Path: "/v1/orders/{id}/position",
		Summary: "See where an order's courier is", Errors: []int{401, 404, 422, 429, 503},
		Description: "While the order is out with a courier; before and after, and until the courier was heard of, 204. Follow it live in /v1/events.",
		Responses:   map[string]*huma.Response{"204": {Description: "Nobody is on the way, or was not heard of yet."}},
	}, s.getPosition)
}

func (s *service) getPosition(ctx context.Context, in *positionInput) (*positionOutput, error) {
	id, err := in.order()
	if err != nil {
		return nil, err
	}
	tenant := tenantOf(ctx).ID
	p, err := s.Positions.Position(ctx, tenant, id)
	if errors.Is(err, tracking.ErrNotFound) {
		// Of an order that is the merchant's this is no error: whoever looks while
		// a courier is being found asks for it.
		_, err := s.Orders.Get(ctx, tenant, id)
		return &positionOutput{Status: http.StatusNoContent}, err
	}
	if err != nil {
		return nil, err
	}
	out := &positionOutput{http.StatusOK, &Position{
		TrackedPosition: publicPosition(p), CourierID: p.Courier,
		SpeedMps: p.SpeedMps, AccuracyM: p.AccuracyM, ETA: p.Arrival,
	}}
	if !in.Trail {
		return out, nil
	}
	way, err := s.Positions.Trail(ctx, tenant, id)
	for _, f := range way {
		at := f.Rounded()
		out.Body.Trail = append(out.Body.Trail, TrailFix{at.Lat, at.Lng, f.Time})
	}
	return out, err
}

func publicPosition(p tracking.Position) TrackedPosition {
	at := p.Rounded()
	return TrackedPosition{Lat: at.Lat, Lng: at.Lng, HeadingDeg: p.HeadingDeg, FixTime: p.Time}
}

// locate adds to an order's public view where its courier is. A view without it
// is better than none: what fails is logged.
func (s *service) locate(ctx context.Context, order uuid.UUID, view *Tracking) {
	if s.Positions == nil {
		return
	}
	p, err := s.Positions.ForOrder(ctx, order)
	switch {
	case errors.Is(err, tracking.ErrNotFound):
	case err != nil:
		if ctx.Err() == nil {
			s.Logger.ErrorContext(ctx, "position of a tracked order is not known", "error", err)
		}
	default:
		shown := publicPosition(p)
		view.Position = &shown
		if p.Arrival != nil {
			view.ETA = p.Arrival
		}
	}
}
