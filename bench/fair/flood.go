package fair

import (
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const orderBody = `{"customer":{"name":"Ana","phone":"+55 11 90000-0000"},
"pickup":{"street":"Rua Augusta","number":"1200","cep":"01304-001","district":"Consolação","lat":-23.5563,"lng":-46.6622},
"dropoff":{"street":"Alameda Santos","number":"900","cep":"01418-100","district":"Jardim Paulista","lat":-23.5670,"lng":-46.6500},
"items":[{"name":"Pão de queijo","quantity":6,"unit_price":450}]}`

// poured is what became of a flood.
type poured struct {
	taken, refused, failed int
	took                   time.Duration
}

// flood sends orders over many connections, each the next when the one before
// was answered.
type flood struct {
	cfg    Config
	url    string
	key    string
	client *http.Client
	cancel context.CancelFunc
	done   chan poured

	left, taken, refused, failed atomic.Int64
}

func startFlood(ctx context.Context, cfg Config, url, key string) *flood {
	ctx, cancel := context.WithCancel(ctx)
	f := &flood{
		cfg: cfg, url: url, key: key, cancel: cancel, done: make(chan poured, 1),
		client: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: cfg.Connections}},
	}
	f.left.Store(int64(cfg.Orders))
	go f.pour(ctx)
	return f
}

func (f *flood) pour(ctx context.Context) {
	began := time.Now()
	var all sync.WaitGroup
	for range f.cfg.Connections {
		all.Go(func() {
			for ctx.Err() == nil && f.left.Add(-1) >= 0 {
				f.place(ctx)
			}
		})
	}
	all.Wait()
	f.client.CloseIdleConnections()
	f.done <- poured{int(f.taken.Load()), int(f.refused.Load()), int(f.failed.Load()), time.Since(began)}
}

// stop ends the flood and tells what became of it.
func (f *flood) stop() poured {
	f.cancel()
	return <-f.done
}

// place sends an order until it is taken.
func (f *flood) place(ctx context.Context) {
	for ctx.Err() == nil {
		status, after := f.send(ctx)
		switch {
		case status == http.StatusCreated:
			f.taken.Add(1)
			return
		case status != http.StatusTooManyRequests && status != http.StatusServiceUnavailable:
			if ctx.Err() == nil {
				f.failed.Add(1)
			}
			return
		}
		f.refused.Add(1)
		if f.cfg.Rude {
			continue
		}
		select {
		case <-ctx.Done():
		case <-time.After(after):
		}
	}
}

func (f *flood) send(ctx context.Context) (status int, after time.Duration) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.url+"/v1/orders", strings.NewReader(orderBody))
	if err != nil {
		return 0, 0
	}
	req.Header.Set("Authorization", "Bearer "+f.key)
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.client.Do(req)
	if err != nil {
		return 0, 0
	}
	defer func() { _ = resp.Body.Close() }()
	_, _ = io.Copy(io.Discard, resp.Body) // for the connection's next request
	seconds, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil {
		seconds = 1
	}
	return resp.StatusCode, time.Duration(seconds) * time.Second
}
