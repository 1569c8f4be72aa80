package delivery

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"
)

const orderBody = `{"customer":{"name":"Ana","phone":"+55 11 90000-0000"},
"pickup":{"street":"Rua Augusta","number":"1200","cep":"01304-001","district":"Consolação","lat":-23.5563,"lng":-46.6622},
"dropoff":{"street":"Alameda Santos","number":"900","cep":"01418-100","district":"Jardim Paulista","lat":-23.5670,"lng":-46.6500},
"items":[{"name":"Pão de queijo","quantity":6,"unit_price":450}]}`

// place orders over HTTP, and tells how long the answer took.
func (h *house) place(ctx context.Context) (order uuid.UUID, took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.app.Addresses().HTTP+"/v1/orders", strings.NewReader(orderBody))
	if err != nil {
		return order, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+h.key)
	req.Header.Set("Content-Type", "application/json")
	began := time.Now()
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return order, 0, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	took = time.Since(began)
	if err == nil && res.StatusCode != http.StatusCreated {
		err = fmt.Errorf("POST /v1/orders: %s: %.200s", res.Status, b)
	}
	if err != nil {
		return order, took, err
	}
	var o struct{ ID uuid.UUID }
	err = json.Unmarshal(b, &o)
	return o.ID, took, err
}

// trade places orders at a steady rate, however long the answers take.
func (h *house) trade(ctx context.Context, rate int, length time.Duration) (s sale, err error) {
	var mu sync.Mutex
	var posts sync.WaitGroup
	due := time.NewTicker(time.Second / time.Duration(rate))
	defer due.Stop()
	for range int(length.Seconds() * float64(rate)) {
		select {
		case <-ctx.Done():
			posts.Wait()
			return s, ctx.Err()
		case <-due.C:
		}
		posts.Go(func() {
			id, took, fault := h.place(ctx)
			mu.Lock()
			defer mu.Unlock()
			if fault != nil {
				s.refused, err = s.refused+1, fault
				return
			}
			s.orders, s.took = append(s.orders, id), append(s.took, took)
		})
	}
	posts.Wait()
	return s, err
}

// sale is what came of placing orders.
type sale struct {
	orders  []uuid.UUID
	took    []time.Duration // for the answer
	refused int
}
