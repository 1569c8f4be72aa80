//go:build unix

package local_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

const helperDir, helperPort = "WAYBILL_HELPER_DIR", "WAYBILL_HELPER_PORT"

func TestMain(m *testing.M) {
	if dir := os.Getenv(helperDir); dir != "" {
		helper(dir)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		_ = os.RemoveAll(seed)
		os.Exit(code)
	}))
}

// seed is a directory whose server ran once: copying it spares most tests the
// second that initdb takes.
var (
	seed    string
	seeding sync.Mutex
)

// prepared is a copy of seed.
func prepared(t *testing.T) string {
	t.Helper()
	sow(t)
	dir := pgtest.Dir(t)
	copyTree(t, seed, dir)
	return dir
}

// sow makes the seed, once.
func sow(t *testing.T) {
	t.Helper()
	seeding.Lock()
	defer seeding.Unlock()
	if seed != "" {
		return
	}
	first := pgtest.Dir(t)
	stop(t, start(t, local.Config{Dir: first}))
	made := seedDir()
	copyTree(t, first, made)
	seed = made
}

// seedDir outlives the test that makes it.
func seedDir() string {
	dir, err := os.MkdirTemp("", "waybill-seed-")
	if err != nil {
		panic(err)
	}
	return dir
}

func copyTree(t *testing.T, from, to string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", from+"/.", to).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// helper is another process that runs a server, until it is killed.
func helper(dir string) {
	port, _ := strconv.Atoi(os.Getenv(helperPort))
	s, err := local.Start(context.Background(), local.Config{Dir: dir, Port: port})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	fmt.Println("pid", s.PID())
	<-s.Done()
	os.Exit(1)
}

// elsewhere starts a server in a process that the test may kill.
func elsewhere(t *testing.T, dir string, port int) (p *os.Process, server int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), helperDir+"="+dir, helperPort+"="+strconv.Itoa(port))
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(line, "pid %d", &server); err != nil {
		t.Fatalf("helper says %q", line)
	}
	return cmd.Process, server
}

// orphan is a server whose process was killed.
func orphan(t *testing.T, dir string, port int) int {
	t.Helper()
	p, server := elsewhere(t, dir, port)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = p.Wait()
	return server
}

func start(t *testing.T, cfg local.Config) *local.Server {
	t.Helper()
	s, err := local.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stop(t, s) })
	return s
}

func stop(t *testing.T, s *local.Server) {
	t.Helper()
	if err := s.Stop(context.Background()); err != nil {
		t.Error(err)
	}
}

func connect(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

func exec1(t *testing.T, dsn, sql string) {
	t.Helper()
	if _, err := connect(t, dsn).Exec(t.Context(), sql); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
}

func ask[T any](t *testing.T, dsn, sql string) T {
	t.Helper()
	var v T
	if err := connect(t, dsn).QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return v
}

func ends(t *testing.T, s *local.Server) {
	t.Helper()
	select {
	case <-s.Done():
	case <-time.After(2 * time.Minute):
		t.Fatal("Done does not fire")
	}
}
