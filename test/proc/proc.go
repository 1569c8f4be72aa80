// Package proc runs the real program for tests: built once, started as its own
// process on free ports, killed or stopped as the test likes. It leaves nothing
// behind, the orphaned Postgres of a killed process included.
package proc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// Waybill is `waybill up` or `waybill broker` in a folder of its own. Its ports
// stay the same across restarts. Args, Env, User and Log may be changed before a
// start.
type Waybill struct {
	Dir  string
	Args []string
	Env  []string            // NAME=VALUE, added to an environment without any WAYBILL_
	User *syscall.Credential // who runs it; nil: we
	Log  io.Writer           // gets what it prints, start after start; may be nil

	t    testing.TB
	cmd  *exec.Cmd
	out  *output
	done chan struct{}
	err  error

	Addresses
}

// Addresses is what the program says of itself when it is ready.
type Addresses struct {
	HTTP     string `json:"http"`
	Kafka    string `json:"kafka"`
	Registry string `json:"registry"`
	Database string `json:"database"`
	DemoKey  string `json:"demo_key"`
	PID      int    `json:"pid"`
}

// Up starts `waybill up` and waits until it is ready. On a real Kafka, its
// topics there are removed first.
func Up(t testing.TB, args ...string) *Waybill {
	t.Helper()
	w := New(t, args...)
	w.Start()
	return w
}

// New prepares what Up starts without starting it.
func New(t testing.TB, args ...string) *Waybill {
	t.Helper()
	w := prepare(t, "up", append([]string{"--no-sim", "--listen", Free(t), "--postgres-port", Port(Free(t))}, args...)...)
	if brokertest.Kafka() {
		e := brokertest.New(t)
		w.Env = append(w.Env, "WAYBILL_KAFKA_BROKERS="+e.Brokers[0])
		clean(t, e)
	}
	return w
}

// Broker starts `waybill broker`, whatever Kafka the tests run on.
func Broker(t testing.TB, args ...string) *Waybill {
	t.Helper()
	w := prepare(t, "broker", args...)
	w.Start()
	return w
}

// Role prepares `waybill run`, which has no folder and does not say when it is
// ready: it is launched, and where it serves, asked.
func Role(t testing.TB, role string, args ...string) *Waybill {
	t.Helper()
	w := &Waybill{t: t, Args: append([]string{"run", role}, args...)}
	t.Cleanup(w.end)
	return w
}

func prepare(t testing.TB, command string, args ...string) *Waybill {
	t.Helper()
	Binary(t)
	w := &Waybill{t: t, Dir: filepath.Join(pgtest.Dir(t), "data")}
	w.Args = append([]string{command, "--dir", w.Dir, "--kafka-listen", Free(t), "--registry-listen", Free(t)}, args...)
	t.Cleanup(w.end)
	return w
}

// Start starts the program again in the same folder and waits until it is
// ready.
func (w *Waybill) Start() {
	w.t.Helper()
	if err := w.TryStart(); err != nil {
		w.t.Fatal(err)
	}
}

// TryStart is Start for those who expect it to fail.
func (w *Waybill) TryStart() error {
	if err := w.Launch(); err != nil {
		return err
	}
	return w.Await()
}

// Launch starts the program and does not wait.
func (w *Waybill) Launch() error {
	if err := os.Remove(w.running()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	w.out, w.done = &output{}, make(chan struct{})
	w.cmd = exec.Command(Binary(w.t), w.Args...)
	w.cmd.Env = environment(w.Env...)
	w.cmd.Stdout = w.out
	if w.Log != nil {
		w.cmd.Stdout = io.MultiWriter(w.out, w.Log)
	}
	w.cmd.Stderr = w.cmd.Stdout
	// A group of its own, as a shell with job control gives it.
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: w.User}
	if err := w.cmd.Start(); err != nil {
		w.cmd = nil
		return err
	}
	cut, err := lifeline(w.cmd.Process.Pid)
	go func(cmd *exec.Cmd, done chan struct{}) {
		w.err = cmd.Wait()
		if cut != nil {
			cut()
		}
		close(done)
	}(w.cmd, w.done)
	return err
}

func (w *Waybill) running() string { return filepath.Join(w.Dir, "running.json") }

// Await waits until what was launched is ready.
func (w *Waybill) Await() error {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(3 * time.Minute)
	for {
		if b, err := os.ReadFile(w.running()); err == nil && json.Unmarshal(b, &w.Addresses) == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-late:
			w.Kill()
			return fmt.Errorf("not ready after 90 s\n%s", w.out)
		case <-w.done:
			return fmt.Errorf("ended before it was ready: %w\n%s", w.err, w.out)
		}
	}
}

// Output is what the process printed since its last start.
func (w *Waybill) Output() string { return w.out.String() }
