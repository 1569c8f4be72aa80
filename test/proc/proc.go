// Package proc runs the real program for tests: built once, started as its own
// process on free ports, killed or stopped as the test likes.
package proc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// Binary is the program, built once for the test binary.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "waybill-bin-")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "waybill")
	cmd := exec.Command("go", "build", "-o", path, "github.com/waybillhq/waybill/cmd/waybill")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build: %w\n%s", err, out)
	}
	return path, nil
})

// Waybill is `waybill up` in a folder of its own. Its ports stay the same
// across restarts.
type Waybill struct {
	t    testing.TB
	Dir  string
	args []string
	env  []string

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

// Up starts the program and waits until it is ready. On a real Kafka, its
// topics there are removed first: another test's database knows nothing of
// them.
func Up(t testing.TB, args ...string) *Waybill {
	t.Helper()
	w := New(t, args...)
	w.Start()
	return w
}

// New prepares a folder and ports without starting anything.
func New(t testing.TB, args ...string) *Waybill {
	t.Helper()
	w := &Waybill{t: t, Dir: filepath.Join(pgtest.Dir(t), "data")}
	w.args = append([]string{
		"up", "--dir", w.Dir, "--listen", free(t), "--kafka-listen", free(t),
		"--registry-listen", free(t), "--postgres-port", port(free(t)),
	}, args...)
	if brokertest.Kafka() {
		e := brokertest.New(t)
		w.env = append(w.env, "WAYBILL_KAFKA_BROKERS="+e.Brokers[0])
		clean(t, e)
	}
	t.Cleanup(w.end)
	return w
}

func free(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func port(addr string) string {
	_, p, _ := net.SplitHostPort(addr)
	return p
}

func clean(t testing.TB, e *brokertest.Engine) {
	t.Helper()
	adm := kadm.NewClient(e.Client(t, kgo.MetadataMinAge(10*time.Millisecond)))
	if _, err := adm.DeleteGroups(t.Context(), "analytics"); err != nil {
		t.Fatal(err)
	}
	names := []string{"orders.events", "_schemas"}
	if _, err := adm.DeleteTopics(t.Context(), names...); err != nil {
		t.Fatal(err)
	}
	// Deletion is only begun: a topic made anew too early would go with it.
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for range 200 {
		there, err := adm.ListTopics(kadm.WithAuthorizedOps(t.Context()), names...)
		if err == nil && !there.Has(names[0]) && !there.Has(names[1]) {
			return
		}
		<-tick.C
	}
	t.Fatal("topics of an earlier test are not gone after 10 s")
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
	running := filepath.Join(w.Dir, "running.json")
	if err := os.Remove(running); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	w.out, w.done = &output{}, make(chan struct{})
	w.cmd = exec.Command(Binary(w.t), w.args...)
	w.cmd.Env = append(os.Environ(), w.env...)
	w.cmd.Stdout, w.cmd.Stderr = w.out, w.out
	if err := w.cmd.Start(); err != nil {
		return err
	}
	go func(cmd *exec.Cmd, done chan struct{}) {
		w.err = cmd.Wait()
		close(done)
	}(w.cmd, w.done)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	late := time.After(90 * time.Second)
	for {
		if b, err := os.ReadFile(running); err == nil && json.Unmarshal(b, &w.Addresses) == nil {
			return nil
		}
		select {
		case <-tick.C:
		case <-late:
			_ = w.cmd.Process.Kill()
			<-w.done
			return fmt.Errorf("not ready after 90 s\n%s", w.out)
		case <-w.done:
			return fmt.Errorf("ended before it was ready: %w\n%s", w.err, w.out)
		}
	}
}

// Kill ends the process as kill -9 does. Its Postgres lives on.
func (w *Waybill) Kill() {
	_ = w.cmd.Process.Kill()
	<-w.done
}

// Stop asks for an orderly stop and returns how the process ended.
func (w *Waybill) Stop() error {
	_ = w.cmd.Process.Signal(os.Interrupt)
	select {
	case <-w.done:
	case <-time.After(60 * time.Second):
		_ = w.cmd.Process.Kill()
		<-w.done
		return fmt.Errorf("did not stop within 60 s\n%s", w.out)
	}
	return w.err
}

// Output is what the process printed since its last start.
func (w *Waybill) Output() string { return w.out.String() }

// end leaves nothing behind, the orphaned Postgres of a killed process
// included.
func (w *Waybill) end() {
	if w.cmd == nil {
		return
	}
	select {
	case <-w.done:
		if w.err == nil {
			return // an orderly stop took Postgres along
		}
		if w.killOrphan() {
			return
		}
	default:
		if err := w.Stop(); err != nil && !w.t.Failed() {
			w.t.Errorf("stop: %v", err)
		}
	}
	if w.t.Failed() {
		w.t.Logf("output of waybill up:\n%s", tail(w.out.String(), 8000))
	}
}

// killOrphan stops the Postgres of a killed process by the pid it wrote down.
func (w *Waybill) killOrphan() bool {
	files, _ := filepath.Glob(filepath.Join(w.Dir, "postgres", "*", "postmaster.pid"))
	more, _ := filepath.Glob(filepath.Join(w.Dir, "postgres", "postmaster.pid"))
	for _, f := range append(files, more...) {
		b, err := os.ReadFile(f)
		if err != nil {
			continue
		}
		line, _, _ := bytes.Cut(b, []byte("\n"))
		if pid, err := strconv.Atoi(string(bytes.TrimSpace(line))); err == nil && pid > 1 {
			_ = syscall.Kill(pid, syscall.SIGQUIT)
			return true
		}
	}
	return false
}

func tail(s string, n int) string { return s[max(0, len(s)-n):] }

// output collects what a process prints.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

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
