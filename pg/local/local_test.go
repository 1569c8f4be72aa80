//go:build unix

package local_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestFreshServerIsDurableAndReadyForReplication(t *testing.T) {
	s := start(t, local.Config{Dir: pgtest.Dir(t), Settings: map[string]string{"work_mem": "9MB"}})
	for name, want := range map[string]string{
		"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on", "wal_level": "logical", "jit": "off",
		"max_slot_wal_keep_size": "4GB", "listen_addresses": "127.0.0.1", "unix_socket_directories": "",
		"server_encoding": "UTF8", "TimeZone": "UTC", "work_mem": "9MB", "password_encryption": "scram-sha-256",
	} {
		if got := ask[string](t, s.AdminDSN(), "show "+name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if s.Adopted() {
		t.Error("adopted, from nothing")
	}
}

func TestApplicationRoleOwnsItsDatabaseAndIsBoundByPolicies(t *testing.T) {
	t.Parallel()
	s := start(t, local.Config{Dir: pgtest.Dir(t)})
	if !ask[bool](t, s.DSN(), `select rolreplication and rolcanlogin and not rolsuper and not rolbypassrls and not rolcreatedb
		and not rolcreaterole from pg_roles where rolname = current_user`) {
		t.Error("the role has other rights")
	}
	exec1(t, s.DSN(), "create schema things; create table things.t (id int); create table here (id int)")
	if !ask[bool](t, s.DSN(), "select datdba = current_user::regrole from pg_database where datname = current_database()") {
		t.Error("the role does not own its database")
	}
	if ask[string](t, s.DSN(), "select lower('ÁÉ')") != "áé" {
		t.Error("letters beyond ASCII have no case")
	}
}

func TestPasswordsAreRequiredAndForOurEyesOnly(t *testing.T) {
	t.Parallel()
	dir := pgtest.Dir(t)
	s := start(t, local.Config{Dir: dir})
	info, err := os.Stat(filepath.Join(dir, "credentials.json"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("passwords are kept as %v, %v", info.Mode(), err)
	}
	for _, dsn := range []string{s.DSN(), s.AdminDSN()} {
		c, err := pgx.ParseConfig(dsn)
		if err != nil {
			t.Fatal(err)
		}
		c.Password = "guess"
		if _, err := pgx.ConnectConfig(t.Context(), c); err == nil {
			t.Errorf("%s may log in with any password", c.User)
		}
	}
	log, _ := os.ReadFile(filepath.Join(dir, "postgres.log"))
	c, _ := pgx.ParseConfig(s.DSN())
	if strings.Contains(string(log), c.Password) {
		t.Error("the password is in the server's log")
	}
}

func TestRestartKeepsData(t *testing.T) {
	t.Parallel()
	dir := prepared(t)
	s := start(t, local.Config{Dir: dir})
	exec1(t, s.DSN(), "create table things as select 7 as id")
	stop(t, s)
	if err := s.Err(); err != nil {
		t.Errorf("an asked-for end is an error: %v", err)
	}
	ends(t, s)
	s = start(t, local.Config{Dir: dir})
	if ask[int](t, s.DSN(), "select id from things") != 7 || s.Adopted() {
		t.Error("another server")
	}
}

func TestDirectoryNeverHasTwoServers(t *testing.T) {
	dir := prepared(t)
	s := start(t, local.Config{Dir: dir})
	if _, err := local.Start(t.Context(), local.Config{Dir: dir}); !errors.Is(err, local.ErrInUse) {
		t.Errorf("in the same process: %v", err)
	}
	stop(t, s)
	_, pid := elsewhere(t, dir, 0)
	if _, err := local.Start(t.Context(), local.Config{Dir: dir}); !errors.Is(err, local.ErrInUse) {
		t.Errorf("in another process: %v", err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the other's server is gone: %v", err)
	}
}

func TestTakenPortSaysWhich(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = local.Start(t.Context(), local.Config{Dir: prepared(t), Port: l.Addr().(*net.TCPAddr).Port})
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), l.Addr().String()) {
		t.Errorf("got %v", err)
	}
}

func TestChosenPortIsUsed(t *testing.T) {
	s := start(t, local.Config{Dir: prepared(t)})
	port := s.Port()
	stop(t, s)
	s = start(t, local.Config{Dir: filepath.Dir(s.DataDir()), Port: port})
	if s.Port() != port || ask[int](t, s.DSN(), "select setting::int from pg_settings where name = 'port'") != port {
		t.Errorf("listens on %d, want %d", s.Port(), port)
	}
}

func TestTerminalSignalsDoNotReachTheServer(t *testing.T) {
	s := start(t, local.Config{Dir: prepared(t)})
	group, err := syscall.Getpgid(s.PID())
	if err != nil || group != s.PID() {
		t.Errorf("process group %d of server %d, %v", group, s.PID(), err)
	}
}

func TestStartGivenUpLeavesNoServer(t *testing.T) {
	dir := prepared(t)
	stop(t, start(t, local.Config{Dir: dir}))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := local.Start(ctx, local.Config{Dir: dir}); !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v", err)
	}
	if s := start(t, local.Config{Dir: dir}); s.Adopted() {
		t.Error("a server was left running")
	}
}

func TestNoDirectoryIsRefused(t *testing.T) {
	if _, err := local.Start(t.Context(), local.Config{}); err == nil {
		t.Error("started nowhere")
	}
}

// The application's role reads the changes of its database. A copy of the whole
// cluster holds the other roles' passwords as well.
func TestOnlyTheAdministratorCopiesTheCluster(t *testing.T) {
	t.Parallel()
	s := start(t, local.Config{Dir: pgtest.Dir(t)})
	for dsn, want := range map[string]bool{
		s.DSN() + "&replication=true": false, s.AdminDSN() + "&replication=true": true, s.DSN() + "&replication=database": true,
	} {
		c, err := pgconn.Connect(t.Context(), dsn)
		if (err == nil) != want {
			t.Errorf("%s: %v", dsn, err)
		}
		if err == nil {
			_ = c.Close(t.Context())
		}
	}
}
