package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/broker"
)

// logTimeout bounds the start of broker and registry.
const logTimeout = 30 * time.Second

// startLog runs `waybill broker` in a process of its own: what it costs must
// not be taken for the cost of what is measured. Of the two it serves, only
// the one that is missing is used.
func (e *Engines) startLog(ctx context.Context, cfg Config) (err error) {
	dir := filepath.Join(e.dir, "log")
	e.log, err = child.Start(ctx, "waybill broker", cfg.Program, []string{
		"broker", "--dir", dir, "--kafka-listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0", "--log-level", "warn",
	}, nil)
	if err != nil {
		return err
	}
	at, err := e.awaitLog(ctx, filepath.Join(dir, "running.json"))
	if err != nil {
		return err
	}
	if len(cfg.Broker.Brokers) == 0 {
		e.Broker = broker.Config{Brokers: []string{at.Kafka}, Logger: cfg.Broker.Logger}
		e.Caps = broker.Capabilities{}
	}
	if cfg.RegistryURL == "" {
		e.RegistryURL = at.Registry
	}
	return nil
}

// addresses is what `waybill broker` writes down when it is up.
type addresses struct {
	Kafka    string `json:"kafka"`
	Registry string `json:"registry"`
}

func (e *Engines) awaitLog(ctx context.Context, path string) (at addresses, err error) {
	ctx, cancel := context.WithTimeout(ctx, logTimeout)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(path)
		if err == nil && json.Unmarshal(b, &at) == nil {
			return at, nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return at, fmt.Errorf("wait for the broker to start: %w: %s", ctx.Err(), e.log.Said())
		case <-e.log.Done():
			return at, e.log.Ended()
		}
	}
}
