package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/google/uuid"
)

const orderBody = `{"customer":{"name":"Ana","phone":"+55 11 90000-0000"},
"pickup":{"street":"Rua Augusta","number":"1200","cep":"01304-001","district":"Consolação","lat":-23.5563,"lng":-46.6622},
"dropoff":{"street":"Alameda Santos","number":"900","cep":"01418-100","district":"Jardim Paulista","lat":-23.5670,"lng":-46.6500},
"items":[{"name":"Pão de queijo","quantity":6,"unit_price":450},{"name":"Café coado","quantity":2,"unit_price":700}]}`

// load creates orders at the rate and returns how long that took.
func (r *run) load(ctx context.Context, length time.Duration) time.Duration {
	created := make(chan order, r.cfg.Customers)
	var customers, posts sync.WaitGroup
	for range r.cfg.Customers {
		customers.Go(func() {
			for o := range created {
				// At most one a second each: a person does not leaf through
				// tracking pages.
				next := time.Now().Add(time.Second)
				r.follow(ctx, o)
				until(ctx, next)
			}
		})
	}
	total := int(float64(r.cfg.Rate) * length.Seconds())
	began := time.Now()
	for i := range total {
		due := began.Add(time.Duration(i) * time.Second / time.Duration(r.cfg.Rate))
		if !until(ctx, due) {
			break
		}
		posts.Go(func() {
			if o, ok := r.create(ctx, due); ok {
				select {
				case created <- o:
				default: // every customer is busy with another order
				}
			}
		})
	}
	posts.Wait()
	took := time.Since(began)
	close(created)
	customers.Wait()
	return took
}

func until(ctx context.Context, t time.Time) bool {
	wait := time.NewTimer(time.Until(t))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wait.C:
		return true
	}
}

type order struct {
	ID            string `json:"id"`
	TrackingToken string `json:"tracking_token"`
}

func (r *run) create(ctx context.Context, due time.Time) (o order, ok bool) {
	err := r.post(ctx, "/v1/orders", orderBody, http.StatusCreated, &o)
	if err != nil {
		r.ledger.failed(err)
		return o, false
	}
	r.ledger.answered(o.ID, due, time.Now())
	return o, true
}

// follow opens the order's tracking page and then cancels the order,
// the one move that is a merchant's before there is a courier.
func (r *run) follow(ctx context.Context, o order) {
	ctx, cancel := context.WithTimeout(ctx, r.cfg.Patience)
	defer cancel()
	page, err := r.open(ctx, "/track/"+o.TrackingToken+"/events", false)
	if err != nil {
		r.ledger.failed(err)
		return
	}
	defer page.close()
	clicked := time.Now()
	err = r.post(ctx, "/v1/orders/"+o.ID+"/transitions", `{"to":"CANCELLED"}`, http.StatusOK, nil)
	if err != nil {
		r.ledger.failed(err)
		return
	}
	r.ledger.moved(o.ID)
	for {
		m, ok := page.next()
		if !ok {
			r.ledger.notTracked(o.ID)
			return
		}
		if m.Sequence == 2 {
			r.ledger.tracked(m.at.Sub(clicked))
			return
		}
	}
}

func (r *run) post(ctx context.Context, path, body string, want int, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.cfg.URL+path, bytes.NewBufferString(body))
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+r.cfg.Key)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", uuid.NewString())
	resp, err := r.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode != want {
		return fmt.Errorf("POST %s was answered with %s: %.300s", path, resp.Status, b)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(b, into)
}
