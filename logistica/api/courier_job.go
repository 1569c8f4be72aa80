package api

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/logistica/tenants"
)

// Jobs is the orders a courier was given.
type Jobs interface {
	Jobs(ctx context.Context, courier uuid.UUID) ([]orders.Job, error)
	MoveAsCourier(ctx context.Context, courier, order uuid.UUID, m orders.Move, code string) (orders.Order, error)
}

func (s *service) jobRoutes() {
	move := []int{400, 401, 403, 404, 409, 413, 415, 422, 429, 503}
	route(s, huma.Operation{
		OperationID: "list-jobs", Method: http.MethodGet, Path: "/v1/courier/jobs", Metadata: takes(tenants.Courier),
		Summary: "List the orders given to the courier that have not ended", Errors: []int{401, 403, 429, 503},
	}, s.listJobs)
	route(s, huma.Operation{
		OperationID: "accept-job", Method: http.MethodPost, Path: "/v1/courier/jobs/{id}/accept", Metadata: takes(tenants.Courier),
		Summary: "Set out for the merchant: the order becomes PICKUP_ONGOING", Errors: move,
	}, s.acceptJob)
	route(s, huma.Operation{
		OperationID: "move-job", Method: http.MethodPost, Path: "/v1/courier/jobs/{id}/moves", Metadata: takes(tenants.Courier),
		Summary: "Move an order on its way", Errors: move,
		Description: "DELIVERED takes the customer's delivery code. A forbidden move answers 409 with from and allowed.",
	}, s.moveJob)
	route(s, huma.Operation{
		OperationID: "decline-job", Method: http.MethodPost, Path: "/v1/courier/jobs/{id}/decline", Metadata: takes(tenants.Courier),
		Summary: "Give an order back before its goods are picked up", Errors: move, DefaultStatus: http.StatusNoContent,
		Description: "Another courier is looked for. 409 once the goods are picked up.",
	}, s.declineJob)
}

// Job is an order as its courier sees it: with addresses, without prices.
type Job struct {
	ID          uuid.UUID     `json:"id" format:"uuid" doc:"The order."`
	State       string        `json:"state"`
	Allowed     []string      `json:"allowed" nullable:"false" doc:"Where the courier may take it."`
	Version     int64         `json:"version"`
	Attempt     int32         `json:"attempt"`
	Pickup      Place         `json:"pickup"`
	Dropoff     Place         `json:"dropoff"`
	Customer    Customer      `json:"customer"`
	Items       []TrackedItem `json:"items" nullable:"false"`
	PromisedAt  *time.Time    `json:"promised_at,omitempty"`
	AssignedAt  *time.Time    `json:"assigned_at,omitempty"`
	PickupETA   *time.Time    `json:"pickup_eta,omitempty"`
	DeliveryETA *time.Time    `json:"delivery_eta,omitempty"`
	DistanceM   *int64        `json:"distance_m,omitempty" doc:"Metres, estimated."`
	CodeLocked  bool          `json:"code_locked,omitempty" doc:"No delivery code is taken, until the merchant resets the tries."`
}

func jobJSON(j orders.Job) Job {
	items := make([]TrackedItem, len(j.Items))
	for i, item := range j.Items {
		items[i] = TrackedItem(item)
	}
	return Job{
		ID: j.Order, State: string(j.State), Allowed: names(j.Allowed), Version: j.Version, Attempt: j.Attempt,
		Pickup: Place(j.Pickup), Dropoff: Place(j.Dropoff), Customer: Customer(j.Customer), Items: items,
		PromisedAt: j.PromisedAt, AssignedAt: j.AssignedAt, PickupETA: j.PickupETA, DeliveryETA: j.DeliveryETA,
		DistanceM: j.DistanceM, CodeLocked: j.CodeLocked,
	}
}

type jobsOutput struct {
	Body struct {
		Jobs []Job `json:"jobs" nullable:"false" doc:"Oldest first."`
	}
}

func (s *service) listJobs(ctx context.Context, _ *struct{}) (*jobsOutput, error) {
	list, err := s.Jobs.Jobs(ctx, courierOf(ctx))
	if err != nil {
		return nil, err
	}
	out := &jobsOutput{}
	out.Body.Jobs = make([]Job, len(list))
	for i, j := range list {
		out.Body.Jobs[i] = jobJSON(j)
	}
	return out, nil
}

// movedOutput is short: what a courier may do next is in the list of jobs.
type movedOutput struct {
	Body struct {
		ID      uuid.UUID `json:"id" format:"uuid" doc:"The order."`
		State   string    `json:"state"`
		Version int64     `json:"version"`
	}
}

type jobMoveInput struct {
	OrderPath
	Body struct {
		To              string `json:"to" doc:"The state to go to."`
		Code            string `json:"code,omitempty" maxLength:"32" doc:"The customer's delivery code, for DELIVERED."`
		ExpectedVersion int64  `json:"expected_version,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Refuse with 409 unless the order is at this version: a move that got no answer can be sent again."`
		Reason          string `json:"reason,omitempty" doc:"Why; published with the event, so without personal data. At most 200 characters."`
	}
}

func (s *service) acceptJob(ctx context.Context, in *OrderPath) (*movedOutput, error) {
	return s.moveAsCourier(ctx, *in, orders.Move{To: orders.PickupOngoing}, "")
}

func (s *service) moveJob(ctx context.Context, in *jobMoveInput) (*movedOutput, error) {
	return s.moveAsCourier(ctx, in.OrderPath, orders.Move{
		To: orders.State(in.Body.To), Reason: in.Body.Reason, Expected: in.Body.ExpectedVersion,
	}, in.Body.Code)
}

func (s *service) moveAsCourier(ctx context.Context, path OrderPath, m orders.Move, code string) (*movedOutput, error) {
	id, err := path.order()
	if err != nil {
		return nil, err
	}
	m.Actor = orders.Courier
	o, err := s.Jobs.MoveAsCourier(ctx, courierOf(ctx), id, m, code)
	if err != nil {
		return nil, err
	}
	out := &movedOutput{}
	out.Body.ID, out.Body.State, out.Body.Version = o.ID, string(o.State), o.Version
	return out, nil
}

// declineBody is where a courier says why, if they do.
type declineBody struct {
	Reason string `json:"reason,omitempty" maxLength:"200" doc:"For the courier's own use: it is not kept."`
}

type declineInput struct {
	OrderPath
	Body *declineBody
}

// declineJob asks orders first: couriers hears of a pickup a moment later.
func (s *service) declineJob(ctx context.Context, in *declineInput) (*struct{}, error) {
	id, err := in.order()
	if err != nil {
		return nil, err
	}
	courier := courierOf(ctx)
	list, err := s.Jobs.Jobs(ctx, courier)
	if err != nil {
		return nil, err
	}
	for _, j := range list {
		if j.Order == id && !before(j.State) {
			return nil, couriers.ErrCarried
		}
	}
	var reason string
	if in.Body != nil {
		reason = in.Body.Reason
	}
	return nil, s.Duty.Decline(ctx, courier, id, reason)
}

// before tells the states in which nobody has the goods yet.
func before(state orders.State) bool {
	return state == orders.Assigned || state == orders.PickupOngoing || state == orders.ArrivedAtMerchant
}
