// Package e2e measures what a person waits for: from the click that creates an
// order to its confirmation on an open stream, over real HTTP.
//
// The load is open: an order is due at its moment whether or not the one
// before was answered, and the wait counts from that moment. A server that
// stalls is therefore charged for what it kept waiting.
package e2e

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// Config is what to measure.
type Config struct {
	URL       string        // of the API, http://HOST:PORT
	Key       string        // API key of a merchant
	Rate      int           // orders a second
	Warmup    time.Duration // of load before that, whose waits are not counted
	Duration  time.Duration // of the load
	Customers int           // tracking pages open at once, each following an order
	Patience  time.Duration // after which an event that was not seen is lost, or unfinished; 10 s if zero
}

// Result is one run. A figure of no samples is nil: a zero would look fast.
type Result struct {
	Name            string   `json:"name"`
	Rate            int      `json:"rate"`
	Orders          int      `json:"orders"` // answered with 201
	Failed          int      `json:"failed"` // answered otherwise
	Failure         string   `json:"failure,omitempty"`
	Events          int      `json:"events"`       // seen on the merchant's stream
	PerSecond       float64  `json:"events_per_s"` // these, over the length of the load
	OrdersPerSecond float64  `json:"orders_per_s"` // orders answered, over the same
	Mean            *float64 `json:"mean_ms"`      // from due to seen
	P50             *float64 `json:"p50_ms"`
	P99             *float64 `json:"p99_ms"`
	Max             *float64 `json:"max_ms"`
	AnswerP50       *float64 `json:"answer_p50_ms"` // from due to the answer of POST
	AnswerP99       *float64 `json:"answer_p99_ms"`
	Tracked         int      `json:"tracked"`        // status changes that customers waited for
	TrackedP50      *float64 `json:"tracked_p50_ms"` // from the merchant's click to the customer's page
	TrackedP99      *float64 `json:"tracked_p99_ms"`
	// Unfinished are the orders of which not all was seen when patience was over,
	// and nothing of later ones either: while broker or relay are away, their
	// events stand in the outbox.
	Unfinished int `json:"unfinished"`
	// Lost are those that events of clearly later orders overtook for good.
	Lost       int     `json:"lost"`
	Reordered  int     `json:"reordered"`
	Duplicates int     `json:"duplicates"`
	CPU        float64 `json:"cpu_s,omitempty"`  // of the measured process, over the load
	RSS        float64 `json:"rss_mb,omitempty"` // of the measured process, after it
}

// run is one measurement under way.
type run struct {
	cfg    Config
	client *http.Client
	ledger *ledger
}

// Run puts the load on and waits for what is outstanding.
func Run(ctx context.Context, cfg Config) (Result, error) {
	if cfg.Patience == 0 {
		cfg.Patience = 10 * time.Second
	}
	r := &run{cfg: cfg, ledger: newLedger(), client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 1024},
	}}
	defer r.client.CloseIdleConnections()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	merchant, err := r.open(ctx, "/v1/events", true)
	if err != nil {
		return Result{}, fmt.Errorf("open the merchant's stream: %w", err)
	}
	var open sync.WaitGroup
	open.Go(func() { merchant.each(r.ledger.saw) })
	r.load(ctx, cfg.Warmup)
	r.ledger.measure(time.Now())
	took := r.load(ctx, cfg.Duration)
	r.ledger.settle(ctx, cfg.Patience)
	err = ctx.Err()
	cancel()
	open.Wait()
	return r.ledger.result(cfg, took), err
}
