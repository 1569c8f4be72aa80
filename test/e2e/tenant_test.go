package e2e

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/test/proc"
)

func merchant(t *testing.T, w *proc.Waybill, name string) (key string) {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), w.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	directory := tenants.New(pool, tenants.Config{})
	m, err := directory.Create(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	if key, _, err = directory.IssueKey(t.Context(), m.ID, tenants.Merchant); err != nil {
		t.Fatal(err)
	}
	return key
}

func TestMerchantSeesNothingOfAnother(t *testing.T) {
	w := proc.Up(t)
	other := merchant(t, w, "Outra Padaria")
	mine, theirs := follow(t, w, w.DemoKey, "/v1/events", ""), follow(t, w, other, "/v1/events", "")
	o := create(t, w)
	if got := mine.next(); got.Data.Subject != o.ID {
		t.Fatalf("its own merchant hears of %s", got.Data.Subject)
	}

	path := "/v1/orders/" + o.ID
	ask(t, w, other, http.MethodGet, path, "", http.StatusNotFound, nil)
	ask(t, w, other, http.MethodPost, path+"/transitions", `{"to":"CANCELLED"}`, http.StatusNotFound, nil)
	var list struct{ Orders []order }
	if ask(t, w, other, http.MethodGet, "/v1/orders", "", http.StatusOK, &list); len(list.Orders) != 0 {
		t.Errorf("listed to another merchant: %+v", list.Orders)
	}
	var counted struct{ Counts map[string]int64 }
	if ask(t, w, other, http.MethodGet, "/v1/orders/counts", "", http.StatusOK, &counted); len(counted.Counts) != 0 {
		t.Errorf("counted for another merchant: %v", counted.Counts)
	}
	if now := read(t, w, o.ID); now.State != "CREATED" || now.Version != 1 {
		t.Errorf("moved by another merchant: %+v", now)
	}

	// The hub has handed out the event above: were it the other's, it would come
	// first. And a cursor of one channel opens no other.
	var own order
	ask(t, w, other, http.MethodPost, "/v1/orders", proc.Order, http.StatusCreated, &own)
	if got := theirs.next(); got.Data.Subject != own.ID {
		t.Errorf("another merchant hears of %s", got.Data.Subject)
	}
	stolen := follow(t, w, other, "/v1/events", mine.last)
	for range 2 {
		if got := stolen.next(); got.Data.Subject == o.ID {
			t.Fatalf("with the cursor of another: %s", got.Raw)
		} else if got.Data.Subject == own.ID {
			break
		}
	}
}

func TestOrdersCourseIsToldByItsLinkAloneAndBare(t *testing.T) {
	w := proc.Up(t)
	all := follow(t, w, w.DemoKey, "/v1/events", "")
	o, beside := create(t, w), create(t, w)
	all.take(map[string][]string{}, 2)
	s := follow(t, w, "", "/track/"+o.Token+"/events", "")
	move(t, w, beside.ID, "ASSIGNING")
	all.next() // handed out: were it told on the other order's link, it would come first
	move(t, w, o.ID, "ASSIGNING")
	got := s.next()
	if got.Data.Sequence != 2 || !strings.Contains(got.Raw, `"to":"ASSIGNING"`) {
		t.Errorf("heard %s", got.Raw)
	}
	for _, private := range []string{o.ID, o.Customer.Name, o.Customer.Phone, o.Dropoff.Street, o.Dropoff.CEP, "tenant"} {
		if strings.Contains(got.Raw, private) {
			t.Errorf("the public is told %q: %s", private, got.Raw)
		}
	}
	for _, guess := range []string{o.ID, o.Token[1:], "x"} {
		for _, path := range []string{"/v1/track/" + guess, "/track/" + guess + "/events"} {
			if status, body, err := w.Request(t.Context(), http.MethodGet, path, ""); err != nil || status != http.StatusNotFound {
				t.Errorf("%s: %d %v %.80s", path, status, err, body)
			}
		}
	}
	ask(t, w, "wb_none", http.MethodGet, "/v1/events", "", http.StatusUnauthorized, nil)
}
