package pg_test

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestPoolSettingsReachTheSession(t *testing.T) {
	pool, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{
		ApplicationName: "things", MaxConns: 3, StatementTimeout: 7 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	for name, want := range map[string]string{
		"application_name": "things", "statement_timeout": "7s", "idle_in_transaction_session_timeout": "1min",
	} {
		if got := query[string](t, pool, "select current_setting($1)", name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if pool.Config().MaxConns != 3 {
		t.Errorf("MaxConns is %d", pool.Config().MaxConns)
	}
}

func TestConnectionStringWinsOverConfig(t *testing.T) {
	pool := open(t, pgtest.New(t)+"&application_name=mine&pool_max_conns=2")
	if got := query[string](t, pool, "select current_setting('application_name')"); got != "mine" {
		t.Errorf("application_name is %q", got)
	}
	if pool.Config().MaxConns != 2 {
		t.Errorf("MaxConns is %d", pool.Config().MaxConns)
	}
}

func TestOpenErrorsNameTheDatabaseAndHideThePassword(t *testing.T) {
	wrong := strings.Replace(pgtest.New(t), "waybill:", "waybill:s3cr3tpw", 1)
	_, err := pg.Open(t.Context(), wrong, pg.Config{})
	refuse(t, err, "s3cr3tpw")
	if !strings.Contains(err.Error(), "127.0.0.1") || !strings.Contains(err.Error(), "test_") {
		t.Errorf("error names no host or database: %v", err)
	}
	if !pg.Infrastructure(err) {
		t.Errorf("a refused login is not the statement's fault: %v", err)
	}
}

func TestUnreadableConnectionStringsHideThePassword(t *testing.T) {
	for _, dsn := range []string{
		"postgres://u:s3cr3tpw@h:port/db", "postgres://u:s3cr3tpw%zz@h/db", "postgres://u:a/s3cr3tpw@h/db?x=%zz",
		"host=h password=s3cr3tpw port=x", "host=h password='s3cr3tpw", "password = s3cr3tpw port = no",
		"s3cr3tpw", "postgres://u:s3cr3tpw@h/db?sslmode=s3cr3tpw", "host=h sslmode=s3cr3tpw",
		"postgres://u:p@h/db?connect_timeout=s3cr3tpw", "postgres://u:p@h/db?pool_max_conns=s3cr3tpw",
	} {
		_, err := pg.Open(t.Context(), dsn, pg.Config{})
		if !errors.Is(err, pg.ErrDSN) {
			t.Errorf("%s: %v, want ErrDSN", dsn, err)
		}
		refuse(t, err, "s3cr3tpw")
		_, err = pg.ReplicationDSN(dsn)
		if err != nil {
			refuse(t, err, "s3cr3tpw")
		}
	}
}

func refuse(t *testing.T, err error, secret string) {
	t.Helper()
	if err == nil {
		t.Fatal("no error")
	}
	if strings.Contains(err.Error(), secret) {
		t.Errorf("the password is in: %v", err)
	}
}

func TestOpenGivesUpOnASilentServer(t *testing.T) {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	for late := time.Now().Add(time.Minute); ; { // a slow machine may stand still meanwhile
		began := time.Now()
		_, err = pg.Open(t.Context(), "postgres://u:p@"+l.Addr().String()+"/db?sslmode=disable",
			pg.Config{ConnectTimeout: 100 * time.Millisecond})
		if err == nil || !pg.Infrastructure(err) {
			t.Fatalf("got %v, want a fault of infrastructure", err)
		}
		if took := time.Since(began); took < 3*time.Second {
			return
		} else if time.Now().After(late) {
			t.Fatalf("gave up after %v", took)
		}
	}
}
