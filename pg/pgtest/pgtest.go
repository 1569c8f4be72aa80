//go:build unix

// Package pgtest gives tests a real Postgres: an empty database each, on one
// server for the whole test binary.
//
// It promises that the server is gone when the binary is, however that ends
// (a panic, a timeout, a kill): a shell waits for the end of a pipe that only
// the binary holds open, stops the server and removes its files. Nothing has
// to be put into TestMain, and no goroutine stays for goleak to find.
//
// The server runs without fsync, so that many tests share a disk: it survives
// kills of its processes, not of the machine, and its speed says nothing about
// a durable one. Measure and crash on [Server].
//
// With WAYBILL_TEST_DATABASE_URL set, New uses that server instead; the role
// in it needs CREATEDB, REPLICATION and, like the application's, no superuser.
// With WAYBILL_TEST_POSTGRES set to a major version, New and [Server] run that
// one, which fetch.sh fetches where it is not installed.
package pgtest

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg/local"
)

const serverVariable = "WAYBILL_TEST_DATABASE_URL"

// One server for all tests of a binary has no owner among them: this is the
// package state that the package is for.
var (
	shared = sync.OnceValues(startShared)
	serial atomic.Int64
)

// server is where databases are made: admin may, and app is to own them.
type server struct{ admin, app string }

// New makes an empty database and returns its connection string. The role in
// it owns the database and may replicate, but is no superuser. The database
// and its replication slots are dropped when t ends.
func New(t testing.TB) string {
	t.Helper()
	s, err := shared()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	return s.give(t, "template0")
}

// give makes a database for t, a copy of template.
func (s server) give(t testing.TB, template string) string {
	t.Helper()
	name := fmt.Sprintf("test_%d_%d", os.Getpid(), serial.Add(1))
	if err := s.create(context.Background(), name, template); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() {
		if err := s.drop(context.Background(), name); err != nil {
			t.Errorf("pgtest: %v", err)
		}
	})
	return withDatabase(s.app, name)
}

// Server starts a durable server for t alone, to be restarted or killed. The
// zero Config will do; Dir is chosen here.
func Server(t testing.TB, cfg local.Config) *local.Server {
	t.Helper()
	cfg.Dir = Dir(t)
	if cfg.Binaries == "" {
		var err error
		if cfg.Binaries, err = chosenBinaries(); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
	}
	s, err := local.Start(context.Background(), cfg)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	return s
}

// Dir is a folder for servers that t starts itself, within reach of the user
// they run as. What runs in it is stopped when t or the binary ends.
func Dir(t testing.TB) string {
	t.Helper()
	dir, end, err := guardedDir()
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	t.Cleanup(end)
	return dir
}

func startShared() (server, error) {
	if dsn, ok := os.LookupEnv(serverVariable); ok && dsn != "" {
		return server{admin: dsn, app: dsn}, nil
	}
	binaries, err := chosenBinaries()
	if err != nil {
		return server{}, err
	}
	dir, _, err := guardedDir() // ends with the binary
	if err != nil {
		return server{}, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	s, err := local.Start(ctx, local.Config{Dir: dir, Binaries: binaries, Settings: map[string]string{
		"fsync": "off", "full_page_writes": "off", "max_replication_slots": "100", "max_wal_senders": "100",
		"max_connections": "300",
	}})
	if err != nil {
		return server{}, err
	}
	if err := askPlainly(ctx, s); err != nil {
		return server{}, err
	}
	s.Detach()
	return server{admin: s.AdminDSN(), app: s.DSN()}, nil
}

func (s server) create(ctx context.Context, name, template string) error {
	return s.do(ctx, func(conn *pgx.Conn) error {
		role, err := pgx.ParseConfig(s.app)
		if err != nil {
			return err
		}
		_, err = conn.Exec(ctx, "create database "+name+" template "+template+" owner "+pgx.Identifier{role.User}.Sanitize())
		return err
	})
}

// drop ends what still uses the database. A slot, even an idle one, would keep
// it, and slots are few.
func (s server) drop(ctx context.Context, name string) error {
	return s.do(ctx, func(conn *pgx.Conn) error {
		for _, sql := range []string{
			"alter database " + name + " allow_connections false",
			"select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '" + name + "'",
			"select pg_drop_replication_slot(slot_name) from pg_replication_slots where database = '" + name + "'",
			"drop database " + name + " with (force)",
		} {
			if _, err := conn.Exec(ctx, sql); err != nil {
				return fmt.Errorf("drop database %s: %w", name, err)
			}
		}
		return nil
	})
}

func (s server) do(ctx context.Context, work func(*pgx.Conn) error) error {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.admin)
	if err != nil {
		return fmt.Errorf("connect to test server: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	return work(conn)
}

// withDatabase replaces the database in a URL or key=value string, where the
// last of several counts.
func withDatabase(dsn, name string) string {
	u, err := url.Parse(dsn)
	if err != nil || u.Scheme == "" {
		return dsn + " dbname=" + name
	}
	u.Path = "/" + name
	return u.String()
}
