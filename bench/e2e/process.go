package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Process is a Waybill started for a measurement, in a folder that goes with
// it.
type Process struct {
	URL, Key string
	Ready    time.Duration // from start to the first request it could answer

	cmd  *exec.Cmd
	dir  string
	stop sync.Once
	done chan error
	log  bytes.Buffer
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
	p := &Process{dir: dir, done: make(chan error, 1)}
	// Not ended by ctx but by Stop: killed, it would leave its Postgres behind.
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), program, "up", "--dir", filepath.Join(dir, "data"), "--listen", "127.0.0.1:0", //nolint:gosec // ourselves
		"--kafka-listen", "127.0.0.1:0", "--registry-listen", "127.0.0.1:0", "--postgres-port", "0", "--log-level", "warn")
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	// A group of its own: Ctrl-C would reach it too, and with ours be the second
	// signal, at which it ends without stopping Postgres.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	began := time.Now()
	if err := p.cmd.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	go func() { p.done <- p.cmd.Wait() }()
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
			HTTP    string `json:"http"`
			DemoKey string `json:"demo_key"`
		}
		if err == nil && json.Unmarshal(b, &at) == nil {
			p.URL, p.Key = at.HTTP, at.DemoKey
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case err := <-p.done:
			p.done <- err
			return errors.New("waybill up ended before it was ready")
		}
	}
}

// Stop asks it to stop, waits, and removes its folder. Only the first call does.
func (p *Process) Stop() (err error) {
	p.stop.Do(func() {
		_ = p.cmd.Process.Signal(os.Interrupt) // it may be gone already
		if err = <-p.done; err != nil {
			err = fmt.Errorf("waybill up: %w\n%s", err, p.log.String())
		}
		err = errors.Join(err, os.RemoveAll(p.dir))
	})
	return err
}

// Usage is the processor time used so far in seconds and the resident memory
// in MB. Both are zero where the system has no /proc.
func (p *Process) Usage() (cpu, rss float64) {
	root := filepath.Join("/proc", strconv.Itoa(p.cmd.Process.Pid))
	if b, err := os.ReadFile(filepath.Join(root, "stat")); err == nil {
		// Behind the name, which may hold spaces: fields 14 and 15 are user and
		// system time in ticks of 10 ms.
		if i := bytes.LastIndexByte(b, ')'); i >= 0 {
			f := strings.Fields(string(b[i+1:]))
			if len(f) > 12 {
				user, _ := strconv.ParseFloat(f[11], 64)
				system, _ := strconv.ParseFloat(f[12], 64)
				cpu = (user + system) / 100
			}
		}
	}
	if b, err := os.ReadFile(filepath.Join(root, "statm")); err == nil {
		if f := strings.Fields(string(b)); len(f) > 1 {
			pages, _ := strconv.ParseFloat(f[1], 64)
			rss = pages * float64(syscall.Getpagesize()) / 1e6
		}
	}
	return cpu, rss
}
