package pg_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestBlameByState(t *testing.T) {
	for code, want := range map[string][2]bool{ // infrastructure, conflict
		"08006": {true, false}, "08P01": {true, false}, "25006": {true, false},
		"53100": {true, false}, "53200": {true, false}, "53300": {true, false},
		"57P01": {true, false}, "57P02": {true, false}, "57P03": {true, false}, "57P05": {true, false},
		"58030": {true, false}, "58P01": {true, false}, "XX001": {true, false},
		"40001": {false, true}, "40P01": {false, true}, "55P03": {false, true},
		"57014": {false, false}, "25P03": {false, false}, "23505": {false, false}, "42P01": {false, false},
		"22003": {false, false}, "XX000": {false, false}, "P0001": {false, false}, "40002": {false, false},
	} {
		err := fmt.Errorf("store: %w", &pgconn.PgError{Code: code})
		if got := [2]bool{pg.Infrastructure(err), pg.Conflict(err)}; got != want {
			t.Errorf("%s: infrastructure, conflict = %v, want %v", code, got, want)
		}
	}
}

func TestBlameByCause(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		err  error
		want bool
	}{
		"none":                {nil, false},
		"own error":           {errors.New("bad amount"), false},
		"cancelled":           {context.Canceled, false},
		"out of time":         {context.DeadlineExceeded, false},
		"refused":             {refused, true},
		"refused to HTTP":     {&url.Error{Op: "Post", URL: "http://x", Err: refused}, false},
		"cut off":             {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), true},
		"closed":              {pgconn.ErrConnClosed, true},
		"end of some input":   {io.EOF, false},
		"joined with a cause": {errors.Join(errors.New("x"), refused), true},
	} {
		if got := pg.Infrastructure(c.err); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if pg.Conflict(c.err) {
			t.Errorf("%s is a conflict", name)
		}
	}
}

func TestCallersDeadlineIsNotTheDatabasesFault(t *testing.T) {
	pool := newPool(t)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	_, err := pool.Exec(ctx, "select pg_sleep(10)")
	if err == nil || pg.Infrastructure(err) {
		t.Errorf("got %v", err)
	}
}

func TestTerminatedSessionIsInfrastructure(t *testing.T) {
	pool := newPool(t)
	_, err := pool.Exec(t.Context(), "select pg_terminate_backend(pg_backend_pid())")
	if !pg.Infrastructure(err) {
		t.Errorf("got %v", err)
	}
}

func TestKilledServerIsInfrastructure(t *testing.T) {
	server := pgtest.Server(t, local.Config{})
	pool := open(t, server.DSN())
	conn, err := pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	if err := syscall.Kill(server.PID(), syscall.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	<-server.Done()
	for _, db := range []interface {
		Exec(context.Context, string, ...any) (pgconn.CommandTag, error)
	}{conn, conn, pool} {
		if _, err := db.Exec(t.Context(), "select 1"); !pg.Infrastructure(err) {
			t.Errorf("%T: %v", err, err)
		}
	}
}
