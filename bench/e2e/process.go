package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/waybillhq/waybill/bench/child"
)

// Process is a Waybill started for a measurement, in a folder that goes with
// it.
type Process struct {
	URL, Key string
	Database string        // connection string of its Postgres
	Ready    time.Duration // from start to the first request it could answer

	up  *child.Process
	dir string
}

// Start runs program's `up` on free ports and waits until it is ready.
func Start(ctx context.Context, program string) (*Process, error) {
	dir, err := os.MkdirTemp("", "waybill-bench-")
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { //nolint:gosec // Postgres' own user must pass through
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	began := time.Now()
	up, err := child.Start(ctx, "waybill up", program, []string{
		"up", "--no-sim", "--dir", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0",
		"--kafka-listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0", "--postgres-port", "0", "--log-level", "warn",
	}, nil)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	p := &Process{up: up, dir: dir}
	if err := p.await(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	p.Ready = time.Since(began)
	return p, nil
}

// await waits for the file in which `up` says where it is.
func (p *Process) await(ctx context.Context) error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		b, err := os.ReadFile(filepath.Join(p.dir, "data", "running.json"))
		var at struct {
			HTTP     string `json:"http"`
			DemoKey  string `json:"demo_key"`
			Database string `json:"database"`
		}
		if err == nil && json.Unmarshal(b, &at) == nil {
			p.URL, p.Key, p.Database = at.HTTP, at.DemoKey, at.Database
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-p.up.Done():
			return p.up.Ended()
		}
	}
}

// Stop asks it to stop, waits, and removes its folder.
func (p *Process) Stop() error {
	return errors.Join(p.up.Stop(), os.RemoveAll(p.dir))
}

// Usage is what it has cost so far.
func (p *Process) Usage() child.Usage { return p.up.Usage() }
