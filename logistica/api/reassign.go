package api

import (
	"context"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/orders"
)

// Reassigner lets an order's courier go, so that another one is looked for. The
// order moves when it hears of that. An error that wraps orders.ErrNotFound or is
// an *orders.ForbiddenTransition is told to the merchant as such.
type Reassigner interface {
	Reassign(ctx context.Context, tenant, order uuid.UUID) error
}

func (s *service) assignmentRoutes() {
	route(s, huma.Operation{
		OperationID: "reassign-order", Method: http.MethodPost, Path: "/v1/orders/{id}/reassign", DefaultStatus: http.StatusAccepted,
		Summary: "Give an order to another courier", Errors: []int{401, 404, 409, 429, 503},
		Description: "From ASSIGNED until the courier has the goods. The order goes back to CREATED with its next attempt as soon as the courier is released, and that courier is not asked again; its events tell.",
	}, s.reassign)
	route(s, huma.Operation{
		OperationID: "reset-delivery-code", Method: http.MethodPost, Path: "/v1/orders/{id}/delivery-code/reset",
		Summary: "Let the courier try the delivery code again", Errors: []int{401, 404, 429, 503},
		Description: "After five wrong codes none is taken. The code itself stays as the customer sees it. Or confirm the delivery: move the order to DELIVERED.",
	}, s.resetCode)
}

func (s *service) reassign(ctx context.Context, in *OrderPath) (*orderOutput, error) {
	id, err := in.order()
	if err != nil {
		return nil, err
	}
	tenant := tenantOf(ctx).ID
	o, err := s.Orders.Get(ctx, tenant, id)
	if err != nil {
		return nil, err
	}
	if !reassignable(o.State) {
		p := typed(http.StatusConflict, typeForbidden, "Forbidden transition",
			"Only an order with a courier who has not picked it up yet can be given to another: it is "+string(o.State)+".")
		p.From, p.To = string(o.State), string(orders.Created)
		p.allow(orders.Allowed(o.State, orders.Merchant))
		return nil, p
	}
	if s.Reassigner == nil {
		return nil, typed(http.StatusServiceUnavailable, typeOverloaded, "Not available just now",
			"This server does not assign couriers. Nothing was done.")
	}
	if err := s.Reassigner.Reassign(ctx, tenant, id); err != nil {
		return nil, err
	}
	return s.orderAnswer(ctx, o), nil
}

// reassignable: the steps by which the system takes an order back from a
// courier are those that a reassignment leads to.
func reassignable(at orders.State) bool {
	return at != orders.Assigning && slices.Contains(orders.Allowed(at, orders.System), orders.Created)
}

func (s *service) resetCode(ctx context.Context, in *OrderPath) (*orderOutput, error) {
	id, err := in.order()
	if err != nil {
		return nil, err
	}
	o, err := s.Orders.ResetCode(ctx, tenantOf(ctx).ID, id)
	if err != nil {
		return nil, err
	}
	return s.orderAnswer(ctx, o), nil
}
