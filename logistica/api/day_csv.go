package api

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/orders"
)

var dayHeader = []string{
	"order_id", "created", "promised", "delivered", "state", "open_delivery_state",
	"courier_id", "total_centavos", "fee_centavos", "currency", "minutes",
}

// writeDay writes the file page by page. A client that reads too slowly for a
// page to leave in three times the bound of a request is given up, and one whose
// file cannot be finished sees the connection break: half a file must not look
// like a whole one.
func (s *service) writeDay(w http.ResponseWriter, r *http.Request, from time.Time) {
	c := http.NewResponseController(w)
	deadline := func() { _ = c.SetWriteDeadline(time.Now().Add(3 * s.cfg.RequestTimeout)) } // only a test's recorder has none
	begun := false
	begin := func(out *csv.Writer) error {
		if begun {
			return nil
		}
		begun = true
		h := w.Header()
		h.Set("Content-Type", "text/csv; charset=utf-8; header=present")
		h.Set("Content-Disposition", `attachment; filename="day-`+from.Format(time.DateOnly)+`.csv"`)
		return out.Write(dayHeader)
	}
	out := newCSV(w)
	err := s.Orders.Day(r.Context(), tenantOf(r.Context()).ID, from, from.AddDate(0, 0, 1), func(page []orders.DayRow) error {
		deadline()
		return errors.Join(begin(out), writePage(out, page, from.Location()))
	})
	if err == nil {
		deadline()
		err = errors.Join(begin(out), flushed(out))
	}
	switch {
	case err == nil:
	case !begun:
		s.problemOf(r.Context(), err).write(w, r)
	default:
		if r.Context().Err() == nil {
			s.Logger.WarnContext(r.Context(), "report was broken off", "request_id", event.Correlation(r.Context()), "error", err)
		}
		panic(http.ErrAbortHandler)
	}
}

func newCSV(w io.Writer) *csv.Writer {
	out := csv.NewWriter(w)
	out.UseCRLF = true // as RFC 4180 has it
	return out
}

func writePage(out *csv.Writer, page []orders.DayRow, zone *time.Location) error {
	for _, row := range page {
		if err := out.Write(dayRecord(row, zone)); err != nil {
			return err
		}
	}
	return flushed(out)
}

func flushed(out *csv.Writer) error {
	out.Flush()
	return out.Error()
}

func dayRecord(o orders.DayRow, zone *time.Location) []string {
	record := []string{
		o.ID.String(), clock(&o.CreatedAt, zone), clock(o.PromisedAt, zone), clock(o.DeliveredAt, zone),
		string(o.State), orders.OpenDelivery(o.State), "", strconv.FormatInt(o.Total, 10), "", o.Currency, "",
	}
	if o.Courier != uuid.Nil {
		record[6] = o.Courier.String()
	}
	if o.Fee != nil {
		record[8] = strconv.FormatInt(*o.Fee, 10)
	}
	if o.DeliveredAt != nil {
		record[10] = strconv.FormatInt(int64(math.Round(o.DeliveredAt.Sub(o.CreatedAt).Minutes())), 10)
	}
	for i := range record {
		record[i] = defused(record[i])
	}
	return record
}

func clock(t *time.Time, zone *time.Location) string {
	if t == nil {
		return ""
	}
	return t.In(zone).Format(time.RFC3339)
}

// defused keeps a spreadsheet from running a text as a formula. A number keeps
// its sign: it is one, whatever it begins with.
func defused(cell string) string {
	if cell == "" || !strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
		return cell
	}
	if _, err := strconv.ParseInt(cell, 10, 64); err == nil {
		return cell
	}
	return "'" + cell
}
