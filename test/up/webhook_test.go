package up

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybillhq/waybill/test/proc"
	"github.com/waybillhq/waybill/webhook/sign"
)

// ear is a merchant's receiver, on this machine.
type ear struct {
	*httptest.Server
	mu       sync.Mutex
	verifier *sign.Verifier
	heard    map[string]int // calls, by webhook-id
	ids      map[string]string
	refused  []string
	hold     chan struct{} // calls wait for it to be closed; nil: none does
	arrived  chan string   // ids of those that wait
}

func newEar(t *testing.T) *ear {
	t.Helper()
	e := &ear{heard: map[string]int{}, ids: map[string]string{}, arrived: make(chan string, 100)}
	e.Server = httptest.NewServer(e)
	t.Cleanup(e.Close)
	return e
}

// ServeHTTP implements http.Handler.
func (e *ear) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	id := r.Header.Get(sign.HeaderID)
	var in struct {
		Type string
		Data struct {
			OrderID    string    `json:"order_id"`
			PromisedAt time.Time `json:"promised_at"` // as text: a number would be refused
		}
	}
	e.mu.Lock()
	if err == nil {
		err = e.verifier.Verify(r.Header, body)
	}
	if err == nil {
		err = json.Unmarshal(body, &in)
	}
	if err != nil {
		e.refused = append(e.refused, err.Error())
	}
	e.heard[id]++
	e.ids[in.Data.OrderID] = id
	hold := e.hold
	e.mu.Unlock()
	if hold != nil {
		e.arrived <- id
		<-hold
	}
}

func (e *ear) set(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
}

// of is the id under which an order was told, and how often; "" if it was not.
func (e *ear) of(order string) (id string, times int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.ids[order], e.heard[e.ids[order]]
}

// call asks the API and reads its answer.
func call[T any](t *testing.T, w *proc.Waybill, want int, method, path, body string) (out T) {
	t.Helper()
	status, b, err := w.Request(t.Context(), method, path, body)
	if err != nil || status != want || len(b) > 0 && json.Unmarshal(b, &out) != nil {
		t.Fatalf("%s %s: %d %s %v", method, path, status, b, err)
	}
	return out
}

type hook struct {
	ID        string
	Secret    string
	Failures  int
	OpenUntil *time.Time `json:"open_until"`
}

const endpoints = "/v1/webhooks/endpoints"

// TestWebhooks shares one Waybill.
func TestWebhooks(t *testing.T) {
	w := proc.New(t)
	w.Env = append(w.Env, "WAYBILL_WEBHOOK_ALLOW=127.0.0.0/8")
	w.Start()
	e := newEar(t)
	h := call[hook](t, w, http.StatusCreated, "POST", endpoints, `{"url":"`+e.URL+`/hook","types":["logistica.orders.OrderCreated"]}`)
	var err error
	if e.verifier, err = sign.NewVerifier(h.Secret); err != nil {
		t.Fatal(err)
	}
	t.Run("an order is told at once, signed, under its event's id", func(t *testing.T) { tell(t, w, e) })
	t.Run("after kill -9 what was under way is told again under the same id, and nothing is lost", func(t *testing.T) { killBetween(t, w, e, h) })
	t.Run("a receiver that fails on purpose is left alone and told later", func(t *testing.T) { failOnPurpose(t, w, e, h) })
	if e.set(func() {}); len(e.refused) > 0 {
		t.Errorf("%d calls did not verify: %s", len(e.refused), e.refused[0])
	}
}

// An endpoint that was added a moment ago hears of the next order.
func tell(t *testing.T, w *proc.Waybill, e *ear) {
	order := place(t, w)
	until(t, "the order is told", func() bool { id, _ := e.of(order); return id != "" })
	id, times := e.of(order)
	r := proc.Command{Args: []string{"tail", "orders.events", "--json", "--count", "1", "--dir", w.Dir}, Env: w.Env}.Run(t)
	var tailed struct {
		Headers map[string]string
		Body    struct {
			OrderID string `json:"order_id"`
		}
	}
	if err := json.Unmarshal([]byte(r.Out), &tailed); err != nil || tailed.Body.OrderID != order || tailed.Headers["ce_id"] != id || times != 1 {
		t.Errorf("told as %s, %d times, of %s; the event is %s (%v)", id, times, order, r.Out, err)
	}
}

func killBetween(t *testing.T, w *proc.Waybill, e *ear, h hook) {
	hold := make(chan struct{})
	e.set(func() { e.hold = hold })
	orders := []string{place(t, w)}
	sent := await(t, e.arrived, "a call is under way")
	for range 20 {
		orders = append(orders, place(t, w))
	}
	w.Kill()
	e.set(func() { e.hold = nil })
	close(hold) // it is answered, to nobody
	w.Start()
	for _, o := range orders {
		until(t, "order "+o+" is told", func() bool { id, _ := e.of(o); return id != "" })
	}
	until(t, "what was not noted is told again", func() bool { _, times := e.of(orders[0]); return times > 1 })
	if id, _ := e.of(orders[0]); id != sent {
		t.Errorf("told as %s and again as %s", sent, id)
	}
	noneWaits(t, w, h)
}

func noneWaits(t *testing.T, w *proc.Waybill, h hook) {
	t.Helper()
	until(t, "all is noted", func() bool {
		return len(call[struct{ Deliveries []any }](t, w, http.StatusOK, "GET", endpoints+"/"+h.ID+"/deliveries?state=pending", "").Deliveries) == 0
	})
}

func failOnPurpose(t *testing.T, w *proc.Waybill, e *ear, h hook) {
	call[any](t, w, http.StatusOK, "PUT", "/v1/faults/webhook-500", `{"value":100}`)
	var orders []string
	for range 6 {
		orders = append(orders, place(t, w))
	}
	until(t, "its breaker opens", func() bool {
		now := call[hook](t, w, http.StatusOK, "GET", endpoints+"/"+h.ID, "")
		return now.OpenUntil != nil && now.Failures >= 5
	})
	log := call[struct {
		Deliveries []struct {
			Log []struct {
				Status int
				Answer string
			}
		}
	}](t, w, http.StatusOK, "GET", endpoints+"/"+h.ID+"/deliveries?state=pending", "").Deliveries
	failed := 0
	for _, d := range log {
		for _, a := range d.Log {
			if a.Status == http.StatusInternalServerError && strings.Contains(a.Answer, "webhook-500") {
				failed++
			}
		}
	}
	if failed < 5 {
		t.Errorf("%d attempts failed of the fault: %+v", failed, log)
	}
	for _, o := range orders {
		if id, _ := e.of(o); id != "" {
			t.Errorf("order %s was told while all calls fail", o)
		}
	}
	call[any](t, w, http.StatusNoContent, "DELETE", "/v1/faults/webhook-500", "")
	for _, o := range orders {
		until(t, "order "+o+" is told once the fault is gone", func() bool { id, _ := e.of(o); return id != "" })
	}
	noneWaits(t, w, h)
}
