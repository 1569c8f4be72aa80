// Package up starts, stops, kills and starves `waybill up` as an operator's
// machine does, and looks at what is left of the orders and of its processes.
package up

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybillhq/waybill/test/proc"
)

// place creates an order and returns its id.
func place(t *testing.T, w *proc.Waybill) string {
	t.Helper()
	id, err := tryPlace(t.Context(), w)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func tryPlace(ctx context.Context, w *proc.Waybill) (string, error) {
	status, body, err := w.Request(ctx, http.MethodPost, "/v1/orders", proc.Order)
	if err != nil {
		return "", err
	}
	var o struct {
		ID string `json:"id"`
	}
	if err := json.Unmarshal(body, &o); err != nil || status != http.StatusCreated {
		return "", fmt.Errorf("create an order: %d %s", status, body)
	}
	return o.ID, nil
}

func checkThere(t *testing.T, w *proc.Waybill, ids ...string) {
	t.Helper()
	for _, id := range ids {
		status, body, err := w.Request(t.Context(), http.MethodGet, "/v1/orders/"+id, "")
		if err != nil || status != http.StatusOK {
			t.Fatalf("order %s: %d %s %v", id, status, body, err)
		}
	}
}

// seen is an event of a merchant's stream.
type seen struct {
	event, cursor string

	Subject string `json:"subject"`
}

// listen opens the merchant's stream after cursor, and gives its events until
// the test or the stream ends. Without a cursor it returns once the stream is
// ready.
func listen(t *testing.T, w *proc.Waybill, cursor string) <-chan seen {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.HTTP+"/v1/events", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+w.DemoKey)
	if cursor != "" {
		req.Header.Set("Last-Event-ID", cursor)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("the stream is refused: %s", resp.Status)
	}
	ready, events := make(chan struct{}), make(chan seen, 1000)
	go func() {
		defer close(events)
		var s seen
		open := sync.OnceFunc(func() { close(ready) })
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ": ")
			switch name {
			case "event":
				if value == "ready" {
					open()
				}
				s.event = value
			case "data":
				_ = json.Unmarshal([]byte(value), &s) // some carry none
			case "id":
				s.cursor = value
			case "": // the end of a message
				if s.Subject != "" || s.event == "reset" {
					events <- s
				}
				s = seen{}
			}
		}
	}()
	if cursor != "" { // it begins with what came after the cursor
		return events
	}
	await(t, ready, "the stream is ready")
	return events
}

// await waits for one value.
func await[T any](t *testing.T, ch <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(2 * time.Minute):
		t.Fatalf("waited for 30 s: %s", what)
		panic("unreachable")
	}
}

// checkFree takes every port of w and lets go of it.
func checkFree(t *testing.T, w *proc.Waybill) {
	t.Helper()
	for i, a := range w.Args {
		var addr string
		switch a {
		case "--listen", "--kafka-listen", "--registry-listen":
			addr = w.Args[i+1]
		case "--postgres-port":
			addr = "127.0.0.1:" + w.Args[i+1]
		default:
			continue
		}
		l, err := net.Listen("tcp", addr)
		if err != nil {
			t.Errorf("%s: %v", a, err)
			continue
		}
		_ = l.Close()
	}
}

// processes are those whose command line names the folder of w, children of a
// Postgres left out: its server's alone does.
func processes(t *testing.T, w *proc.Waybill) (found []string) {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skip("processes are found in /proc, which this system lacks")
	}
	data, err := filepath.EvalSymlinks(filepath.Join(w.Dir, "postgres", "data"))
	if err != nil {
		data = w.Dir
	}
	for _, f := range files {
		b, _ := os.ReadFile(f) // gone meanwhile
		line := strings.ReplaceAll(string(b), "\x00", " ")
		pid, _ := strconv.Atoi(strings.Split(f, "/")[2])
		if pid != os.Getpid() && (strings.Contains(line, w.Dir) || strings.Contains(line, data)) {
			found = append(found, fmt.Sprintf("%d: %s", pid, line))
		}
	}
	return found
}

func checkNothingRuns(t *testing.T, w *proc.Waybill) {
	t.Helper()
	if found := processes(t, w); len(found) > 0 {
		t.Errorf("still running:\n%s", strings.Join(found, "\n"))
	}
	checkFree(t, w)
}
