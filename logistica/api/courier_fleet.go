package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/tenants"
)

// Fleet is the couriers who ride for a merchant.
type Fleet interface {
	Linked(ctx context.Context, tenant uuid.UUID) ([]couriers.Courier, error)
}

func (s *service) fleetRoutes() {
	route(s, huma.Operation{
		OperationID: "list-couriers", Method: http.MethodGet, Path: "/v1/couriers", Metadata: takes(tenants.Merchant),
		Summary: "List the couriers who ride for the merchant, by name", Errors: []int{401, 403, 429, 503},
		Description: "1000 at most. Where they are is told only of an order's own courier.",
	}, s.listCouriers)
}

// LinkedCourier is a courier as a merchant sees one.
type LinkedCourier struct {
	ID      uuid.UUID `json:"id" format:"uuid"`
	Name    string    `json:"name"`
	Vehicle string    `json:"vehicle" enum:"MOTORBIKE,BICYCLE,CAR"`
	State   string    `json:"state" enum:"OFFLINE,AVAILABLE,RESERVED,BUSY,PAUSED"`
}

type fleetOutput struct {
	Body struct {
		Couriers []LinkedCourier `json:"couriers" nullable:"false"`
	}
}

func (s *service) listCouriers(ctx context.Context, _ *struct{}) (*fleetOutput, error) {
	list, err := s.Fleet.Linked(ctx, tenantOf(ctx).ID)
	if err != nil {
		return nil, err
	}
	out := &fleetOutput{}
	out.Body.Couriers = make([]LinkedCourier, len(list))
	for i, c := range list {
		out.Body.Couriers[i] = LinkedCourier{ID: c.ID, Name: c.Name, Vehicle: string(c.Vehicle), State: string(c.State)}
	}
	return out, nil
}
