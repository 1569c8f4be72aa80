package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/waybillhq/waybill/logistica/notify"
	"github.com/waybillhq/waybill/logistica/tenants"
)

// streamRoutes are plain handlers: huma would write the answer itself.
func (s *service) streamRoutes() {
	s.stream("/v1/events", s.withTenant(s.tenantEvents), &huma.Operation{
		OperationID: "stream-events", Summary: "Follow the merchant's events",
		Description: "Server-Sent Events. Reconnect with Last-Event-ID; on a message named reset read the orders again.",
	})
	s.stream("/track/{token}/events", s.orderEvents, &huma.Operation{
		OperationID: "stream-order", Summary: "Follow an order's events by its tracking link",
		Description: "Server-Sent Events. Public: type, time, sequence and states only.",
		Security:    []map[string][]string{}, Metadata: public,
	})
}

func (s *service) stream(path string, handler http.HandlerFunc, op *huma.Operation) {
	pattern := http.MethodGet + " " + path
	s.streams[pattern] = true
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead { // GET takes HEAD too, which has no body to stream
			w.Header().Set("Allow", http.MethodGet)
			problem(http.StatusMethodNotAllowed, "A stream answers to GET only.").write(w, r)
			return
		}
		handler(w, r)
	})
	op.Method, op.Path = http.MethodGet, path
	op.Responses = map[string]*huma.Response{"200": {
		Description: "A stream that stays open.", Content: map[string]*huma.MediaType{"text/event-stream": {}},
	}}
	s.huma.OpenAPI().AddOperation(op)
}

func (s *service) tenantEvents(w http.ResponseWriter, r *http.Request, t tenants.Tenant) {
	s.Streams.Serve(w, r, notify.TenantChannel(t.ID))
}

func (s *service) orderEvents(w http.ResponseWriter, r *http.Request) {
	t, err := s.Orders.Track(r.Context(), r.PathValue("token"))
	if err != nil {
		s.problemOf(r.Context(), err).write(w, r)
		return
	}
	s.Streams.Serve(w, r, notify.OrderChannel(t.OrderID))
}
