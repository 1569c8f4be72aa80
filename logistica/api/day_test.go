package api_test

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

const dayReport = "/v1/reports/day.csv?date="

// exec changes rows as no request could, in the merchant's name.
func (m merchant) exec(t *testing.T, sql string, args ...any) {
	t.Helper()
	err := pg.InTenant(t.Context(), m.pool, m.id.String(), func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), sql, args...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// day reads a report as records by their header.
func (m merchant) day(t *testing.T, date string) (rows []map[string]string, raw string) {
	t.Helper()
	a := m.ask(t, "GET", dayReport+date, "")
	if a.status != http.StatusOK || a.header.Get("Content-Type") != "text/csv; charset=utf-8; header=present" ||
		a.header.Get("Content-Disposition") != `attachment; filename="day-`+date+`.csv"` {
		t.Fatalf("%d %v: %s", a.status, a.header, a.body)
	}
	all, err := csv.NewReader(strings.NewReader(string(a.body))).ReadAll()
	if err != nil {
		t.Fatalf("%v in %s", err, a.body)
	}
	for _, record := range all[1:] {
		row := map[string]string{}
		for i, name := range all[0] {
			row[name] = record[i]
		}
		rows = append(rows, row)
	}
	return rows, string(a.body)
}

func TestADayIsSaoPaulosAndHasEveryOrderOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	m, other := b.merchant(t, "Padaria"), b.merchant(t, "Pizzaria")
	other.create(t)
	for _, at := range []string{ // in UTC; the day in São Paulo begins at three
		"2026-05-01T02:59:59.999999Z", "2026-05-01T03:00:00Z", "2026-05-02T02:59:59.999999Z", "2026-05-02T03:00:00Z",
	} {
		o := m.create(t)
		m.exec(t, `UPDATE orders.orders SET created_at = $2, updated_at = $2 WHERE id = $1`, o.ID, at)
	}
	for date, want := range map[string][]string{
		"2026-04-30": {"2026-04-30T23:59:59-03:00"}, "2026-05-01": {"2026-05-01T00:00:00-03:00", "2026-05-01T23:59:59-03:00"},
		"2026-05-02": {"2026-05-02T00:00:00-03:00"}, "2026-05-03": nil,
	} {
		rows, raw := m.day(t, date)
		var created []string
		for _, row := range rows {
			created = append(created, row["created"])
		}
		if !slices.Equal(created, want) {
			t.Errorf("%s has %v, want %v", date, created, want)
		}
		if !strings.HasPrefix(raw, "order_id,created,promised,delivered,state,open_delivery_state,courier_id,total_centavos,fee_centavos,currency,minutes\r\n") {
			t.Errorf("%s begins %.80s", date, raw)
		}
	}
}

func TestADaySaysHowAnOrderEnded(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	o, courier := m.assigned(t)
	o = m.move(t, o, "PICKUP_ONGOING", "ARRIVED_AT_MERCHANT", "PICKED_UP", "DELIVERY_ONGOING", "ARRIVED_AT_CUSTOMER", "DELIVERED")
	m.exec(t, `UPDATE orders.orders SET created_at = '2026-05-01T15:00:00Z', updated_at = '2026-05-01T15:42:20Z', promised_at = '2026-05-01T16:00:00Z' WHERE id = $1`, o.ID)
	rows, _ := m.day(t, "2026-05-01")
	want := map[string]string{
		"order_id": o.ID.String(), "created": "2026-05-01T12:00:00-03:00", "promised": "2026-05-01T13:00:00-03:00",
		"delivered": "2026-05-01T12:42:20-03:00", "state": "DELIVERED", "open_delivery_state": "ORDER_DELIVERED",
		"courier_id": courier.String(), "total_centavos": fmt.Sprint(o.Total), "fee_centavos": "150", "currency": "BRL", "minutes": "42",
	}
	if len(rows) != 1 || fmt.Sprint(rows[0]) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", rows, want)
	}
	m.exec(t, `UPDATE orders.assignments SET voided_at = now() WHERE order_id = $1`, o.ID)
	if rows, _ = m.day(t, "2026-05-01"); rows[0]["fee_centavos"] != "" {
		t.Errorf("a voided fee is billed: %v", rows)
	}
}

// No column holds what a person typed today. The file must stay harmless where
// one comes to.
func TestASpreadsheetRunsNothingOfADay(t *testing.T) {
	t.Parallel()
	m := newBed(t).merchant(t, "Padaria")
	hostile := []string{
		`=HYPERLINK("http://x","y")`, "+1+1", "-2+3", "@SUM(A1)", "\t=1", "\r=1", "\n=1", `a","=1`, "a\r\n=1,2", "ção", "BRL",
	}
	for _, text := range hostile {
		o := m.create(t)
		m.exec(t, `UPDATE orders.orders SET created_at = '2026-05-01T15:00:00Z', currency = $2 WHERE id = $1`, o.ID, text)
	}
	rows, raw := m.day(t, "2026-05-01")
	if len(rows) != len(hostile) {
		t.Fatalf("%d rows of %d: %s", len(rows), len(hostile), raw)
	}
	var seen []string
	for _, row := range rows {
		cell := row["currency"]
		if strings.ContainsRune("=+-@\t\r\n", rune(cell[0])) {
			t.Errorf("a cell begins as a formula: %q", cell)
		}
		seen = append(seen, strings.TrimPrefix(cell, "'"))
	}
	for _, text := range hostile {
		if !slices.Contains(seen, strings.ReplaceAll(text, "\r", "")) { // which breaks of lines are written without
			t.Errorf("%q is lost among %q", text, seen)
		}
	}
	if !strings.Contains(raw, "ção") {
		t.Error("not UTF-8")
	}
}

// TestALargeDayIsWrittenInLittleMemory: many orders pass through
// pages, not through memory. It is not parallel: the heap is everybody's.
func TestALargeDayIsWrittenInLittleMemory(t *testing.T) {
	m := newBed(t).merchant(t, "Padaria")
	const n = 40_000
	m.exec(t, `INSERT INTO orders.orders
		SELECT $1, gen_random_uuid(), gen_random_uuid()::text, 'CREATED', 1, 's', 'n', 'c', 'd', 0, 0, '', 's', 'n', 'c', 'd', 0, 0, '',
			'', '', '[]', 0, 'BRL', NULL, timestamptz '2026-05-01T15:00:00Z' + (g / 7) * interval '1 millisecond', now()
		FROM generate_series(1, $2::int) g`, m.id, n)
	peak := watchHeap(t)
	req, err := http.NewRequestWithContext(t.Context(), "GET", m.url+dayReport+"2026-05-01", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+m.key)
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	in := csv.NewReader(res.Body)
	in.ReuseRecord = true
	for i := range n + 1 {
		if _, err := in.Read(); err != nil {
			t.Fatalf("after %d: %v", i, err)
		}
	}
	if _, err := in.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("after the last: %v", err)
	}
	// The file has 6 MB, and so have the rows.
	if grown := peak(); grown > 5<<20 {
		t.Errorf("what is in use grew by %d kB", grown>>10)
	}
}

// watchHeap notes how much is in use at most until it is asked, above what is
// now.
func watchHeap(t *testing.T) (grown func() uint64) {
	t.Helper()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	before, most, stop, done := m.HeapAlloc, uint64(0), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		for tick := time.NewTicker(50 * time.Millisecond); ; {
			select {
			case <-stop:
				return
			case <-tick.C:
				runtime.GC()
				runtime.ReadMemStats(&m)
				most = max(most, m.HeapAlloc)
			}
		}
	}()
	return func() uint64 {
		close(stop)
		<-done
		return most - min(before, most)
	}
}

func TestADayOfAnotherTenantIsEmpty(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	ours, theirs := b.merchant(t, "Padaria"), b.merchant(t, "Pizzaria")
	o := ours.create(t)
	zone, err := time.LoadLocation("America/Sao_Paulo")
	if err != nil {
		t.Fatal(err)
	}
	date := o.CreatedAt.In(zone).Format(time.DateOnly)
	if rows, raw := theirs.day(t, date); len(rows) != 0 {
		t.Errorf("they see %s", raw)
	}
	if rows, raw := ours.day(t, date); len(rows) != 1 {
		t.Errorf("we see %s", raw)
	}
}

func TestAMerchantReadsTwoReportsAtOnce(t *testing.T) {
	t.Parallel()
	b := newBed(t)
	m, other := b.merchant(t, "Padaria"), b.merchant(t, "Pizzaria")
	const query = dayReport + "2026-05-01"
	lock, err := m.pool.Begin(t.Context()) // reports wait for it
	if err != nil {
		t.Fatal(err)
	}
	if _, err := lock.Exec(t.Context(), `LOCK TABLE orders.orders IN ACCESS EXCLUSIVE MODE`); err != nil {
		t.Fatal(err)
	}
	answers := make(chan answer)
	for _, who := range []merchant{m, m, other} {
		go func() { answers <- who.ask(t, "GET", query, "") }()
	}
	late := time.After(time.Minute)
	for waiting := 0; waiting < 3; {
		err := m.pool.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&waiting)
		if err != nil {
			t.Fatal(err)
		}
		select {
		case <-late:
			t.Fatalf("%d reports are read", waiting)
		case <-time.After(10 * time.Millisecond):
		}
	}
	a := m.ask(t, "GET", query, "")
	a.problem(t, http.StatusTooManyRequests)
	if a.header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	if err := lock.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if a := <-answers; a.status != http.StatusOK {
			t.Errorf("%d %s", a.status, a.body)
		}
	}
	if a := m.ask(t, "GET", query, ""); a.status != http.StatusOK { // the room was given back
		t.Errorf("afterwards: %d %s", a.status, a.body)
	}
	if a := m.ask(t, "HEAD", query, ""); a.status != http.StatusMethodNotAllowed {
		t.Errorf("HEAD: %d", a.status)
	}
}
