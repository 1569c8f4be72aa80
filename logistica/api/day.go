package api

import (
	"context"
	"net/http"
	"time"
	_ "time/tzdata" // where the program runs there may be no time zones

	"github.com/danielgtaylor/huma/v2"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/tenants"
)

// dayZone is where a merchant's day begins and ends.
const dayZone = "America/Sao_Paulo"

// How many files are written at once, each of which holds a page in memory and
// reads the database for the next: of one merchant, and of all.
const (
	maxReportsOfOne = 2
	maxReports      = 32
)

const dayPath = "/v1/reports/day.csv"

// dayRoutes is a plain handler: huma would gather the whole file.
func (s *service) dayRoutes() error {
	zone, err := time.LoadLocation(dayZone)
	if err != nil {
		return err
	}
	pattern, reports := http.MethodGet+" "+dayPath, &reportRoom{make(chan struct{}, maxReports), newAllowance(maxReportsOfOne)}
	s.streams[pattern] = true
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodHead { // GET takes HEAD too, which would read all for nothing
			w.Header().Set("Allow", http.MethodGet)
			problem(http.StatusMethodNotAllowed, "A report answers to GET only.").write(w, r)
			return
		}
		if r.ContentLength != 0 { // the server would wait for what is left of it when the file is written
			w.Header().Set("Connection", "close")
		}
		r, from, done, refused := s.openReport(r, zone, reports)
		if refused != nil {
			refused.write(w, r)
			return
		}
		defer done()
		s.writeDay(w, r, from)
	})
	s.huma.OpenAPI().AddOperation(dayOperation())
	return nil
}

func dayOperation() *huma.Operation {
	return &huma.Operation{
		OperationID: "close-day", Method: http.MethodGet, Path: dayPath, Summary: "Close a day: its orders as a CSV file",
		Description: "The orders created on that day in " + dayZone + ", oldest first. UTF-8 with a header; times with their offset, money in centavos, minutes from creation to delivery. A text that a spreadsheet would take for a formula begins with an apostrophe.",
		Parameters: []*huma.Param{{
			Name: "date", In: "query", Required: true, Description: "The day, as 2026-05-01.",
			Schema: &huma.Schema{Type: huma.TypeString, Format: "date"},
		}},
		Responses: map[string]*huma.Response{
			"200": {Description: "The file.", Content: map[string]*huma.MediaType{"text/csv": {}}},
			"401": {Description: "No key."}, "422": {Description: "No such day."},
			"429": {Description: "Two of the merchant's reports are being written."},
			"503": {Description: "Too many reports are being written."},
		},
	}
}

// openReport finds whose day is asked for and which, and takes the room for it.
func (s *service) openReport(r *http.Request, zone *time.Location, reports *reportRoom) (_ *http.Request, from time.Time, done func(), _ *Problem) {
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.RequestTimeout)
	acting, refused := s.tenant(ctx, r, tenants.Merchant)
	cancel()
	if refused != nil {
		return r, from, nil, refused
	}
	if r.ContentLength != 0 {
		return r, from, nil, problem(http.StatusBadRequest, "A report is asked for without a body.")
	}
	from, refused = dayOf(r, zone)
	if refused != nil {
		return r, from, nil, refused
	}
	caller := tenantOf(acting).ID.String()
	if refused := reports.take(caller); refused != nil {
		return r, from, nil, refused
	}
	// The file has as long as its client reads it, so the deadline of the look
	// at the key must not be its own.
	full := context.WithValue(event.WithTenant(r.Context(), caller), tenantKey{}, tenantOf(acting))
	return r.WithContext(full), from, func() { reports.give(caller) }, nil
}

// reportRoom is the room for files that are being written.
type reportRoom struct {
	slots  chan struct{}
	shares *allowance
}

func (r *reportRoom) take(caller string) *Problem {
	if !r.shares.take(caller) {
		return typed(http.StatusTooManyRequests, typeOverloaded, "Too many requests",
			"Two of your reports are being written. Read one of them to its end, then ask again.")
	}
	select {
	case r.slots <- struct{}{}:
		return nil
	default:
		r.shares.give(caller)
		return overloaded()
	}
}

func (r *reportRoom) give(caller string) {
	<-r.slots
	r.shares.give(caller)
}

func dayOf(r *http.Request, zone *time.Location) (time.Time, *Problem) {
	query := r.URL.Query()
	for name := range query {
		if name != "date" {
			return time.Time{}, badQuery(name, "Is not a parameter of this report.")
		}
	}
	day, err := time.ParseInLocation(time.DateOnly, query.Get("date"), zone)
	if err != nil || len(query["date"]) != 1 || day.Year() < 2000 {
		return time.Time{}, badQuery("date", "Must be one day such as 2026-05-01.")
	}
	return day, nil
}
