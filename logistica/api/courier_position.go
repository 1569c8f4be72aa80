package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/tenants"
)

// Telemetry takes positions of couriers.
type Telemetry interface {
	Track(ctx context.Context, courier uuid.UUID, fixes []couriers.Fix) (accepted int, err error)
}

func (s *service) fixRoutes() {
	route(s, huma.Operation{
		OperationID: "send-positions", Method: http.MethodPost, Path: "/v1/courier/positions", Metadata: takes(tenants.Courier),
		Summary: "Report where the courier is", Errors: []int{400, 401, 403, 404, 413, 415, 422, 429, 503}, DefaultStatus: http.StatusAccepted,
		Description: "1 to 100 positions, in any order; late and repeated ones are taken too. Those older than an hour or more than two minutes ahead are left out of the count; a report of nothing else is 422. Accepted is not yet published: a position may be lost. After 503 send the next positions, not the same again.",
	}, s.sendPositions)
}

// Fix is where the courier's device was.
type Fix struct {
	Seq      int64     `json:"seq" minimum:"0" maximum:"9007199254740991" doc:"Counts the device's positions; a lower one is older."`
	Lat      float64   `json:"lat" doc:"Degrees, -90 to 90."`
	Lng      float64   `json:"lng" doc:"Degrees, -180 to 180."`
	Speed    *float32  `json:"speed_mps,omitempty" doc:"Metres a second, 0 to 150."`
	Heading  *float32  `json:"heading_deg,omitempty" doc:"Degrees clockwise from north, 0 to 360."`
	Accuracy *float32  `json:"accuracy_m,omitempty" doc:"Radius in metres that holds the position with 68 %."`
	FixTime  time.Time `json:"fix_time" doc:"When the device was there, by its clock."`
}

type positionsInput struct {
	Body struct {
		Positions []Fix `json:"positions" minItems:"1" maxItems:"100" nullable:"false"`
	}
}

type positionsOutput struct {
	Body struct {
		Accepted int `json:"accepted" doc:"How many of them are on their way."`
	}
}

func (s *service) sendPositions(ctx context.Context, in *positionsInput) (*positionsOutput, error) {
	fixes := make([]couriers.Fix, len(in.Body.Positions))
	for i, p := range in.Body.Positions {
		fixes[i] = couriers.Fix{
			Seq: p.Seq, Lat: p.Lat, Lng: p.Lng, Speed: p.Speed, Heading: p.Heading, Accuracy: p.Accuracy, At: p.FixTime,
		}
	}
	n, err := s.Telemetry.Track(ctx, courierOf(ctx), fixes)
	if err != nil {
		return nil, err
	}
	out := &positionsOutput{}
	out.Body.Accepted = n
	return out, nil
}
