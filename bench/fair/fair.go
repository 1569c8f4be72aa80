// Package fair measures what one merchant's flood costs another: from the click
// that creates an order to its confirmation on the merchant's stream, first with
// nobody else there, then beside a merchant that sends orders as fast as they
// are taken.
package fair

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/waybillhq/waybill/bench/e2e"
)

// Config is what to measure.
type Config struct {
	Program     string        // whose `up` is measured
	Rate        int           // orders a second of the calm merchant
	Duration    time.Duration // of either half, after a warm-up
	Orders      int           // of the flood, at most
	Connections int           // of the flood: orders it sends at the same time
	Rude        bool          // the flood sends again at once when it is told to wait
	Progress    func(step string)
}

// Result is one run. A figure of no samples is nil.
type Result struct {
	Name         string   `json:"name"`
	Rate         int      `json:"rate"`
	IdleP50      *float64 `json:"idle_p50_ms"`
	IdleP99      *float64 `json:"idle_p99_ms"`
	FloodedP50   *float64 `json:"flooded_p50_ms"`
	FloodedP99   *float64 `json:"flooded_p99_ms"`
	Ratio        *float64 `json:"ratio"`              // of the two p99
	IdleAnswer   *float64 `json:"idle_answer_p99_ms"` // until the POST is answered
	FloodAnswer  *float64 `json:"flooded_answer_p99_ms"`
	FloodOrders  int      `json:"flood_orders"`
	FloodRate    float64  `json:"flood_per_s"`   // orders taken
	FloodRefused int      `json:"flood_refused"` // requests told to come back
	FloodFailed  int      `json:"flood_failed"`  // answered otherwise
	FloodSeconds float64  `json:"flood_s"`
	Refused      int      `json:"refused"` // of the calm merchant's orders
	Failure      string   `json:"failure,omitempty"`
	Unfinished   int      `json:"unfinished"` // of the calm merchant's orders, not seen to their end
	Lost         int      `json:"lost"`
	Reordered    int      `json:"reordered"`
	CPU          float64  `json:"cpu_s,omitempty"`
	RSS          float64  `json:"rss_mb,omitempty"`
}

const warmup = 3 * time.Second

// Run starts a Waybill in a folder of its own, measures, and stops it.
func Run(ctx context.Context, cfg Config) (res Result, err error) {
	cfg.Progress("starting a Waybill")
	p, err := e2e.Start(ctx, cfg.Program)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, p.Stop()) }()
	calm, flood, err := merchants(ctx, cfg.Program, p.Database)
	if err != nil {
		return res, err
	}
	load := e2e.Config{URL: p.URL, Key: calm, Rate: cfg.Rate, Warmup: warmup, Duration: cfg.Duration, Patience: 30 * time.Second}
	cfg.Progress("measuring with nobody else there")
	idle, err := e2e.Run(ctx, load)
	if err != nil {
		return res, err
	}
	before := p.Usage()
	cfg.Progress("measuring beside a flood")
	f := startFlood(ctx, cfg, p.URL, flood)
	flooded, err := e2e.Run(ctx, load)
	poured := f.stop()
	if err != nil {
		return res, err
	}
	res = combine(cfg, idle, flooded, poured)
	if after := p.Usage(); after.Known {
		res.CPU, res.RSS = after.CPU-before.CPU, after.RSS
	}
	return res, nil
}

// merchants makes two, as an operator does, and gives their keys.
func merchants(ctx context.Context, program, database string) (calm, flood string, err error) {
	var keys [2]string
	for i, name := range []string{"Calm", "Flood"} {
		cmd := exec.CommandContext(ctx, program, "tenant", "create", name, "--json") //nolint:gosec // ourselves
		cmd.Env = append(os.Environ(), "WAYBILL_DATABASE_URL="+database)
		out, err := cmd.Output()
		var made struct {
			Key string `json:"key"`
		}
		if err == nil {
			err = json.Unmarshal(out, &made)
		}
		if err != nil {
			return "", "", fmt.Errorf("make the merchant %s: %w", name, err)
		}
		keys[i] = made.Key
	}
	return keys[0], keys[1], nil
}

func combine(cfg Config, idle, flooded e2e.Result, f poured) Result {
	res := Result{
		Name: "fair", Rate: cfg.Rate, IdleP50: idle.P50, IdleP99: idle.P99, FloodedP50: flooded.P50, FloodedP99: flooded.P99,
		IdleAnswer: idle.AnswerP99, FloodAnswer: flooded.AnswerP99,
		FloodOrders: f.taken, FloodRefused: f.refused, FloodFailed: f.failed, FloodSeconds: f.took.Seconds(),
		FloodRate: float64(f.taken) / max(f.took.Seconds(), 1e-9),
		Refused:   idle.Failed + flooded.Failed, Failure: flooded.Failure,
		Unfinished: idle.Unfinished + flooded.Unfinished, Lost: idle.Lost + flooded.Lost, Reordered: idle.Reordered + flooded.Reordered,
	}
	if res.Failure == "" {
		res.Failure = idle.Failure
	}
	if idle.P99 != nil && flooded.P99 != nil && *idle.P99 > 0 {
		ratio := *flooded.P99 / *idle.P99
		res.Ratio = &ratio
	}
	return res
}
