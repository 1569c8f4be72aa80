package api

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/orders"
)

func (s *service) orderRoutes() {
	create := huma.Operation{
		OperationID: "create-order", Method: http.MethodPost, Path: "/v1/orders", DefaultStatus: http.StatusCreated,
		Summary: "Create an order", Errors: []int{400, 401, 413, 415, 422, 429, 503},
		Description: "With an Idempotency-Key the order is created once, however often the request is sent within 24 hours; a repeated one is answered as the first was, with Idempotency-Replayed: true.",
	}
	route(s, create, s.createOrder)
	create.OperationID, create.Path = "create-order-unversioned", "/orders"
	route(s, create, s.createOrder)
	route(s, huma.Operation{
		OperationID: "list-orders", Method: http.MethodGet, Path: "/v1/orders",
		Summary: "List orders, newest first", Errors: []int{401, 422, 429, 503},
	}, s.listOrders)
	route(s, huma.Operation{
		OperationID: "count-orders", Method: http.MethodGet, Path: "/v1/orders/counts",
		Summary: "Count orders by state", Errors: []int{401, 429, 503},
		Description: "From a read model built from events: it follows the orders after a moment.",
	}, s.countOrders)
	route(s, huma.Operation{
		OperationID: "get-order", Method: http.MethodGet, Path: "/v1/orders/{id}",
		Summary: "Read an order", Errors: []int{401, 404, 429, 503},
	}, s.getOrder)
	route(s, huma.Operation{
		OperationID: "move-order", Method: http.MethodPost, Path: "/v1/orders/{id}/transitions",
		Summary: "Move an order to another state", Errors: []int{400, 401, 404, 409, 413, 415, 422, 429, 503},
		Description: describeMoves(),
	}, s.moveOrder)
	route(s, huma.Operation{
		OperationID: "me", Method: http.MethodGet, Path: "/v1/me",
		Summary: "Tell whose key this is", Errors: []int{401, 429, 503},
	}, s.me)
}

// route registers an operation whose errors become problems in one place.
func route[I, O any](s *service, op huma.Operation, handle func(context.Context, *I) (*O, error)) {
	op.MaxBodyBytes = maxBody
	huma.Register(s.huma, op, func(ctx context.Context, in *I) (*O, error) {
		out, err := work(ctx, s, in, handle)
		if err != nil {
			p := s.problemOf(ctx, err).from(ctx)
			if after := p.after(); after != "" {
				return nil, huma.ErrorWithHeaders(p, http.Header{"Retry-After": {after}})
			}
			return nil, p
		}
		return out, nil
	})
}

type createInput struct {
	Key  string `header:"Idempotency-Key" maxLength:"128" pattern:"^[!-~]+$" doc:"A string of the client's choice, new for each order."`
	Body NewOrder
}

// Resolve refuses a key that is empty or given twice: whoever sends one counts
// on it. Huma takes an empty header for none, and the first of several.
func (*createInput) Resolve(ctx huma.Context) []error {
	r, _ := humago.Unwrap(ctx)
	if given := r.Header.Values("Idempotency-Key"); len(given) > 1 || len(given) == 1 && given[0] == "" {
		return []error{&huma.ErrorDetail{Message: "expected one key, not empty", Location: "header.Idempotency-Key"}}
	}
	return nil
}

type createOutput struct {
	Location string `header:"Location"`
	Replayed string `header:"Idempotency-Replayed"`
	Body     Order
}

func (s *service) createOrder(ctx context.Context, in *createInput) (*createOutput, error) {
	o, repeated, err := s.Orders.Create(ctx, tenantOf(ctx).ID, in.Body.domain(), in.Key)
	if err != nil {
		return nil, err
	}
	out := &createOutput{Location: "/v1/orders/" + o.ID.String(), Body: orderJSON(o, s.cardsOf(ctx, o))}
	if repeated {
		out.Replayed = "true"
	}
	return out, nil
}

// OrderPath is the part of an address that names an order.
type OrderPath struct {
	ID string `path:"id" doc:"The order's id."`
}

// order reads the id; what is no id is no order.
func (p OrderPath) order() (uuid.UUID, error) {
	id, err := uuid.Parse(p.ID)
	if err != nil || len(p.ID) != 36 {
		return uuid.Nil, orders.ErrNotFound
	}
	return id, nil
}

type orderOutput struct{ Body Order }

func (s *service) orderAnswer(ctx context.Context, o orders.Order) *orderOutput {
	return &orderOutput{orderJSON(o, s.cardsOf(ctx, o))}
}

// cardsOf asks once for the couriers of orders of one tenant.
func (s *service) cardsOf(ctx context.Context, list ...orders.Order) map[uuid.UUID]CourierCard {
	var ids []uuid.UUID
	for _, o := range list {
		if o.Courier != uuid.Nil && !slices.Contains(ids, o.Courier) {
			ids = append(ids, o.Courier)
		}
	}
	return s.cards(ctx, tenantOf(ctx).ID, ids)
}

// Transition is the body that moves an order.
type Transition struct {
	To              string `json:"to" doc:"The state to go to."`
	Reason          string `json:"reason,omitempty" doc:"Why; published with the event, so without personal data. At most 200 characters."`
	ExpectedVersion int64  `json:"expected_version,omitempty" minimum:"1" maximum:"9007199254740991" doc:"Refuse with 409 unless the order is at this version."`
}

type moveInput struct {
	OrderPath
	Body Transition
}

func (s *service) moveOrder(ctx context.Context, in *moveInput) (*orderOutput, error) {
	id, err := in.order()
	if err != nil {
		return nil, err
	}
	o, err := s.Orders.Transition(ctx, tenantOf(ctx).ID, id, orders.Move{
		To: orders.State(in.Body.To), Reason: in.Body.Reason, Actor: orders.Merchant, Expected: in.Body.ExpectedVersion,
	})
	if err != nil {
		return nil, err
	}
	return s.orderAnswer(ctx, o), nil
}

type listInput struct {
	State  string `query:"state" doc:"Only orders in this state."`
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor string `query:"cursor" maxLength:"64" doc:"next_cursor of the page before."`
}

type listOutput struct {
	Body struct {
		Orders []Order `json:"orders" nullable:"false"`
		Next   string  `json:"next_cursor,omitempty" doc:"Where the next page begins; left out on the last."`
	}
}

func (s *service) listOrders(ctx context.Context, in *listInput) (*listOutput, error) {
	q := orders.Query{Limit: in.Limit}
	if in.State != "" {
		var ok bool
		if q.State, ok = orders.ParseState(in.State); !ok {
			return nil, badQuery("state", "Is not a state of an order.")
		}
	}
	if in.Cursor != "" {
		var ok bool
		if q.After, ok = readCursor(in.Cursor); !ok {
			return nil, badQuery("cursor", "Was not made by this API.")
		}
	}
	list, more, err := s.Orders.List(ctx, tenantOf(ctx).ID, q)
	if err != nil {
		return nil, err
	}
	out, cards := &listOutput{}, s.cardsOf(ctx, list...)
	out.Body.Orders = make([]Order, len(list))
	for i, o := range list {
		out.Body.Orders[i] = orderJSON(o, cards)
	}
	if more {
		out.Body.Next = cursor(list[len(list)-1].ID)
	}
	return out, nil
}

// cursor names the order a page ended with. It holds an id the caller was
// given anyway, and is read under the caller's tenant: there is nothing in it
// to sign.
func cursor(id uuid.UUID) string { return base64.RawURLEncoding.EncodeToString(id[:]) }

func readCursor(text string) (uuid.UUID, bool) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return uuid.Nil, false
	}
	id, err := uuid.FromBytes(b)
	return id, err == nil && id != uuid.Nil
}

func badQuery(name, message string) *Problem {
	p := typed(http.StatusUnprocessableEntity, typeInvalid, "Invalid request", "Some parameters are not acceptable.")
	p.Errors = []*huma.ErrorDetail{{Message: message, Location: "query." + name}}
	return p
}

type countsOutput struct {
	Body struct {
		Counts map[string]int64 `json:"counts" doc:"By state; states without orders are left out."`
	}
}

func (s *service) countOrders(ctx context.Context, _ *struct{}) (*countsOutput, error) {
	counts, err := s.Counts.Counts(ctx, tenantOf(ctx).ID)
	if err != nil {
		return nil, err
	}
	out := &countsOutput{}
	out.Body.Counts = counts
	return out, nil
}

type meOutput struct {
	Body struct {
		ID   uuid.UUID `json:"id" format:"uuid"`
		Name string    `json:"name"`
		// SetsFaults saves a page a request that would only be refused.
		SetsFaults bool `json:"sets_faults,omitempty" doc:"Whether this key may set faults, see /v1/faults."`
	}
}

func (s *service) me(ctx context.Context, _ *struct{}) (*meOutput, error) {
	t, out := tenantOf(ctx), &meOutput{}
	out.Body.ID, out.Body.Name = t.ID, t.Name
	out.Body.SetsFaults = s.setsFaults(t)
	return out, nil
}
