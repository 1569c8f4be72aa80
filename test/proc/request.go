package proc

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// Request sends JSON with the demonstration's key and returns status and body.
func (w *Waybill) Request(ctx context.Context, method, path, body string, header ...string) (int, []byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, w.HTTP+path, bytes.NewBufferString(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+w.DemoKey)
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	return resp.StatusCode, b, err
}

// Order is a valid new order.
const Order = `{"customer":{"name":"Ana","phone":"+55 11 90000-0000"},
"pickup":{"street":"Rua Augusta","number":"1200","cep":"01304-001","district":"Consolação","lat":-23.5563,"lng":-46.6622},
"dropoff":{"street":"Alameda Santos","number":"900","cep":"01418-100","district":"Jardim Paulista","lat":-23.5670,"lng":-46.6500},
"items":[{"name":"Pão de queijo","quantity":6,"unit_price":450},{"name":"Café coado","quantity":2,"unit_price":700}]}`
