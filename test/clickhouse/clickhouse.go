// Package clickhouse runs ClickHouse's engine for tests: chdb, the engine as
// PyPI has it, behind the part of its HTTP interface that clickhouse-go speaks
// (serve.py). It is a process of its own, which can be killed and started again
// on the same tables.
//
// WAYBILL_CLICKHOUSE asks for it, and where it says "required", as `make
// test-clickhouse` has it, an engine that is not to be had is a failure.
package clickhouse

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

const variable = "WAYBILL_CLICKHOUSE"

// Server is a process with the engine in it.
type Server struct {
	t      testing.TB
	python string
	folder string
	port   string
	cmd    *exec.Cmd
	stdin  io.Closer
}

// Start starts one on a folder of its own. The test is skipped where nobody
// asked for it.
func Start(t testing.TB) *Server {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skip("ClickHouse's engine is run by `make test-clickhouse`")
	}
	python, why := fetch()
	if python == "" && os.Getenv(variable) == "required" {
		t.Fatal("ClickHouse's engine is not to be had: " + why)
	}
	if python == "" {
		t.Skip("ClickHouse's engine is not to be had: " + why)
	}
	s := &Server{t: t, python: python, folder: t.TempDir(), port: "0"}
	s.Restart()
	t.Cleanup(s.Kill)
	return s
}

// URL is where it listens, also after a restart.
func (s *Server) URL() string { return "http://127.0.0.1:" + s.port + "/default" }

// Restart starts it, on the tables and at the port that it had before.
func (s *Server) Restart() {
	s.t.Helper()
	s.cmd = exec.CommandContext(context.WithoutCancel(s.t.Context()), s.python, filepath.Join(here(), "serve.py"), s.folder, s.port)
	var stderr bytes.Buffer
	s.cmd.Stderr = &stderr
	stdin, err := s.cmd.StdinPipe() // it ends with us
	if err != nil {
		s.t.Fatal(err)
	}
	s.stdin = stdin
	stdout, err := s.cmd.StdoutPipe()
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		s.Kill()
		s.t.Fatalf("ClickHouse's engine did not start: %v\n%s", err, &stderr)
	}
	s.port = strings.TrimSpace(line)
}

// Kill ends it as a power cut would.
func (s *Server) Kill() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	_ = s.stdin.Close()
	s.cmd = nil
}

func here() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(file)
}

// fetch is the python that has the engine, once for the test binary.
var fetch = sync.OnceValues(func() (python, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, filepath.Join(here(), "setup.sh"))
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", err.Error() + ": " + stderr.String()
	}
	return strings.TrimSpace(string(out)), ""
})
