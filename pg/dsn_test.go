package pg_test

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestReplicationDSNKeepsTheRest(t *testing.T) {
	for _, dsn := range []string{
		"postgres://u:p%40w@127.0.0.1:5444/db?sslmode=disable&application_name=x",
		"postgresql://u:p%40w@127.0.0.1:5444/db?sslmode=disable&application_name=x&pool_max_conns=4&replication=true",
		"host=127.0.0.1 port=5444 user=u password=p@w dbname=db sslmode=disable application_name=x",
		"host = 127.0.0.1 port=5444 user='u' password='p@w' dbname=db sslmode=disable application_name=x pool_max_conns=4 replication=1",
	} {
		got, err := pg.ReplicationDSN(dsn)
		if err != nil {
			t.Fatalf("%s: %v", dsn, err)
		}
		c, err := pgconn.ParseConfig(got)
		if err != nil {
			t.Fatalf("%s: %v", got, err)
		}
		if c.Host != "127.0.0.1" || c.Port != 5444 || c.User != "u" || c.Password != "p@w" || c.Database != "db" ||
			c.TLSConfig != nil || c.RuntimeParams["application_name"] != "x" {
			t.Errorf("%s became %s", dsn, got)
		}
		if c.RuntimeParams["replication"] != "database" || strings.Contains(got, "pool_") {
			t.Errorf("%s became %s", dsn, got)
		}
	}
}

func TestReplicationDSNOpensAReplicationSession(t *testing.T) {
	dsn, err := pg.ReplicationDSN(pgtest.New(t) + "&pool_max_conns=5")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), "IDENTIFY_SYSTEM").ReadAll(); err != nil {
		t.Fatal(err)
	}
}

// Any value survives the trip through key=value text.
func TestReplicationDSNKeepsAnyPassword(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		password := rapid.StringMatching(`[ -~\t]{1,20}`).Draw(t, "password")
		quoted := "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(password) + "'"
		got, err := pg.ReplicationDSN("host=h user=u dbname=d password=" + quoted + " port=1")
		if err != nil {
			t.Fatal(err)
		}
		c, err := pgx.ParseConfig(got)
		if err != nil || c.Password != password || c.Port != 1 {
			t.Fatalf("%q became %q: %v", password, got, err)
		}
	})
}

func FuzzReplicationDSN(f *testing.F) {
	f.Add("host=h user=u password='a b' replication=x")
	f.Add("postgres://u:p@h:1/d?a=b")
	f.Add(`a=\`)
	f.Fuzz(func(t *testing.T, dsn string) {
		got, err := pg.ReplicationDSN(dsn)
		if err != nil {
			return
		}
		was, err := pgconn.ParseConfig(dsn)
		if err != nil {
			t.Fatalf("%q was accepted: %v", dsn, err)
		}
		is, err := pgconn.ParseConfig(got)
		if err != nil {
			t.Fatalf("%q became unreadable %q: %v", dsn, got, err)
		}
		if was.Host != is.Host || was.Port != is.Port || was.User != is.User || was.Password != is.Password ||
			was.Database != is.Database || is.RuntimeParams["replication"] != "database" {
			t.Fatalf("%q became %q", dsn, got)
		}
	})
}
