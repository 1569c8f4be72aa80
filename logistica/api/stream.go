package api

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/notify"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/push"
)

// followed is a channel, whose it is, and what its stream ends with.
type followed struct {
	channel string
	tenant  uuid.UUID
	by      push.Credential // nothing of a public one
}

// resolve finds the channel that a request may follow.
type resolve func(ctx context.Context, r *http.Request) (followed, *Problem)

// streamRoutes are plain handlers: huma would write the answer itself.
func (s *service) streamRoutes() {
	s.stream("/v1/events", s.tenantChannel, &huma.Operation{
		OperationID: "stream-events", Summary: "Follow the merchant's events",
		Description: "Server-Sent Events, or a WebSocket: ask for the protocols waybill.v1 and, where Authorization cannot be sent, bearer.KEY; reconnect with the query last_event_id. With Server-Sent Events reconnect with Last-Event-ID. On a message named reset read the orders again.",
	})
	s.stream("/track/{token}/events", s.orderChannel, &huma.Operation{
		OperationID: "stream-order", Summary: "Follow an order's events by its tracking link",
		Description: "Server-Sent Events, or a WebSocket of the protocol waybill.v1. Public: type, time, sequence and states only.",
		Security:    []map[string][]string{}, Metadata: public,
		Parameters: []*huma.Param{{
			Name: "token", In: "path", Required: true, Description: "The order's tracking token.",
			Schema: &huma.Schema{Type: huma.TypeString},
		}},
	})
}

func (s *service) stream(path string, find resolve, op *huma.Operation) {
	pattern := http.MethodGet + " " + path
	s.streams[pattern] = true
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead { // GET takes HEAD too, which has no body to stream
			w.Header().Set("Allow", http.MethodGet)
			problem(http.StatusMethodNotAllowed, "A stream answers to GET only.").write(w, r)
			return
		}
		f, refused := s.find(r, find)
		if refused != nil {
			refused.write(w, r)
			return
		}
		if r.ContentLength != 0 { // the server would wait for what is left of it when the stream has ended
			w.Header().Set("Connection", "close")
			problem(http.StatusBadRequest, "A stream is asked for without a body.").write(w, r)
			return
		}
		ctx := push.WithCredential(event.WithTenant(r.Context(), f.tenant.String()), f.by)
		s.Streams.Serve(w, r.WithContext(ctx), f.channel)
	})
	op.Method, op.Path = http.MethodGet, path
	op.Responses = map[string]*huma.Response{"200": {
		Description: "A stream that stays open.", Content: map[string]*huma.MediaType{"text/event-stream": {}},
	}}
	s.huma.OpenAPI().AddOperation(op)
}

// find bounds what a stream asks of the database as any other request's work
// is: a crowd that comes back at once must not starve the rest. The stream
// itself holds no slot.
func (s *service) find(r *http.Request, find resolve) (followed, *Problem) {
	if !s.enter() {
		return followed{}, overloaded()
	}
	defer s.leave()
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.RequestTimeout)
	defer cancel()
	return find(ctx, r)
}

func (s *service) tenantChannel(ctx context.Context, r *http.Request) (followed, *Problem) {
	acting, refused := s.tenant(ctx, r, tenants.Merchant)
	if refused != nil {
		return followed{}, refused
	}
	t := tenantOf(acting)
	return followed{notify.TenantChannel(t.ID), t.ID, credentialOf(t)}, nil
}

func (s *service) orderChannel(ctx context.Context, r *http.Request) (followed, *Problem) {
	if !s.shares.take(ctx, thePublic) {
		return followed{}, greedy()
	}
	defer s.shares.give(thePublic)
	t, err := s.Orders.Track(ctx, r.PathValue("token"))
	if err != nil {
		return followed{}, s.problemOf(ctx, err)
	}
	return followed{channel: notify.OrderChannel(t.OrderID), tenant: t.Tenant}, nil
}

func credentialOf(t tenants.Tenant) push.Credential {
	return push.Credential{ID: t.Credential, Ends: t.Ends}
}
