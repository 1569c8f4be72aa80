//go:build unix

package local_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/local"
)

func TestServerOfAKilledProcessIsAdopted(t *testing.T) {
	dir := prepared(t)
	left := orphan(t, dir, 0)
	s := start(t, local.Config{Dir: dir, Settings: map[string]string{"work_mem": "9MB"}})
	if !s.Adopted() || s.PID() != left {
		t.Fatalf("adopted %v, server %d, want %d", s.Adopted(), s.PID(), left)
	}
	exec1(t, s.DSN(), "create table things (id int)")
	stop(t, s)
	ends(t, s)
	if alive(left) {
		t.Error("an adopted server cannot be stopped")
	}
}

func TestOrphanOnAnotherPortIsReplaced(t *testing.T) {
	dir := prepared(t)
	first := start(t, local.Config{Dir: dir})
	exec1(t, first.DSN(), "create table things as select 7 as id")
	wanted := first.Port()
	stop(t, first)
	left := orphan(t, dir, 0)
	s := start(t, local.Config{Dir: dir, Port: wanted})
	if s.Adopted() || s.PID() == left || s.Port() != wanted || alive(left) {
		t.Errorf("adopted %v, port %d, want %d", s.Adopted(), s.Port(), wanted)
	}
	if ask[int](t, s.DSN(), "select id from things") != 7 {
		t.Error("other data")
	}
}

func TestOrphanThatForgotOurPasswordIsReplaced(t *testing.T) {
	dir := prepared(t)
	s := start(t, local.Config{Dir: dir})
	exec1(t, s.AdminDSN(), "alter role postgres password 'other'")
	left := s.PID()
	s.Detach()
	if _, err := local.Start(t.Context(), local.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), "administrator") {
		t.Errorf("got %v", err)
	}
	if alive(left) {
		t.Error("the orphan runs on")
	}
}

// A killed backend makes the whole server restart itself and recover.
func TestRecoveringOrphanIsWaitedFor(t *testing.T) {
	dir := prepared(t)
	s := start(t, local.Config{Dir: dir})
	exec1(t, s.DSN(), "create table things as select 7 as id")
	backend := connect(t, s.DSN()).PgConn().PID()
	s.Detach()
	kill(t, int(backend), syscall.SIGKILL)
	again := start(t, local.Config{Dir: dir})
	if !again.Adopted() || ask[int](t, again.DSN(), "select id from things") != 7 {
		t.Errorf("adopted %v", again.Adopted())
	}
}

func TestOrphanThatIsJustEndingIsReplaced(t *testing.T) {
	dir := prepared(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGQUIT, syscall.SIGKILL} {
		s := start(t, local.Config{Dir: dir})
		s.Detach()
		kill(t, s.PID(), sig)
		again := start(t, local.Config{Dir: dir})
		exec1(t, again.DSN(), "select 1")
		if again.PID() == s.PID() {
			t.Errorf("adopted a server that ends by %s", sig)
		}
		stop(t, again)
	}
}

func TestAdoptedServersEndIsNoticed(t *testing.T) {
	dir := prepared(t)
	left := orphan(t, dir, 0)
	s := start(t, local.Config{Dir: dir})
	kill(t, left, syscall.SIGKILL)
	ends(t, s)
	if s.Err() == nil || !strings.Contains(s.Err().Error(), "unexpectedly") {
		t.Errorf("got %v", s.Err())
	}
}

func TestDetachedServerRunsOn(t *testing.T) {
	dir := prepared(t)
	s := start(t, local.Config{Dir: dir})
	s.Detach()
	ends(t, s)
	again := start(t, local.Config{Dir: dir})
	if !again.Adopted() || again.PID() != s.PID() || again.DSN() != s.DSN() {
		t.Error("another server")
	}
}

func TestKilledServerIsNoticedAndRecovers(t *testing.T) {
	t.Parallel()
	dir := prepared(t)
	s := start(t, local.Config{Dir: dir})
	exec1(t, s.DSN(), "create table things as select 7 as id")
	kill(t, s.PID(), syscall.SIGKILL)
	ends(t, s)
	if s.Err() == nil || !strings.Contains(s.Err().Error(), "killed") {
		t.Errorf("got %v", s.Err())
	}
	stop(t, s)
	s = start(t, local.Config{Dir: dir})
	if ask[int](t, s.DSN(), "select id from things") != 7 {
		t.Error("committed data is gone")
	}
}

func TestStalePidFilesDoNotKeepAServerFromStarting(t *testing.T) {
	dir := prepared(t)
	s := start(t, local.Config{Dir: dir})
	pidFile := filepath.Join(s.DataDir(), "postmaster.pid")
	real, err := os.ReadFile(pidFile)
	if err != nil {
		t.Fatal(err)
	}
	stop(t, s)
	_, rest, _ := strings.Cut(string(real), "\n")
	for name, text := range map[string]string{
		"empty": "", "garbage": "\x00\xff not a number", "negative": "-1\n" + rest, "init": "1\n" + rest,
		"dead": string(real), "another program": strconv.Itoa(os.Getpid()) + "\n" + rest,
		"a huge number": "99999999999999999999\n" + rest, "cut short": strconv.Itoa(os.Getpid()),
	} {
		t.Run(name, func(t *testing.T) {
			leave(t, pidFile, text)
			s := start(t, local.Config{Dir: dir})
			if s.Adopted() {
				t.Error("adopted what is not there")
			}
			stop(t, s)
		})
	}
}

func TestStopIsBoundedByAReplicationClientThatReadsNoMore(t *testing.T) {
	t.Parallel()
	s := start(t, local.Config{Dir: prepared(t), StopTimeout: 300 * time.Millisecond})
	exec1(t, s.DSN(), "create table things (t text); create publication p for table things")
	exec1(t, s.DSN(), "select pg_create_logical_replication_slot('slow', 'pgoutput')")
	dsn, err := pg.ReplicationDSN(s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Conn().Close() }()
	start := []byte(`START_REPLICATION SLOT slow LOGICAL 0/0 (proto_version '1', publication_names 'p')`)
	msg := append([]byte{'Q', 0, 0, 0, byte(len(start) + 5)}, append(start, 0)...)
	if _, err := conn.Conn().Write(msg); err != nil {
		t.Fatal(err)
	}
	exec1(t, s.DSN(), "insert into things select repeat('x', 1000) from generate_series(1, 20000)")
	began := time.Now()
	stop(t, s)
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("took %v", took)
	}
	if alive(s.PID()) {
		t.Error("runs on")
	}
}

func TestStopDoesNotWaitForOpenTransactions(t *testing.T) {
	s := start(t, local.Config{Dir: prepared(t)})
	tx, err := connect(t, s.DSN()).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	began := time.Now()
	stop(t, s)
	if took := time.Since(began); took > 9*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestStopEndsAHungServer(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes seven seconds")
	}
	s := start(t, local.Config{Dir: prepared(t), StopTimeout: 100 * time.Millisecond})
	kill(t, s.PID(), syscall.SIGSTOP)
	stop(t, s)
	if alive(s.PID()) {
		t.Error("runs on")
	}
}

// leave writes a file as if the server had: it belongs to the server's user.
func leave(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	owner := info.Sys().(*syscall.Stat_t)
	if err := os.Chown(path, int(owner.Uid), int(owner.Gid)); err != nil {
		t.Fatal(err)
	}
}

func kill(t *testing.T, pid int, sig syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(pid, sig); err != nil {
		t.Fatal(err)
	}
}

// alive is false for a zombie that its parent has not collected.
func alive(pid int) bool {
	if syscall.Kill(pid, 0) != nil {
		return false
	}
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || !strings.Contains(string(stat), ") Z ")
}
