//go:build unix

package pgtest_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// Everything goes at once: what was committed stays, what was open does not,
// and the server comes back on the same data and port.
func TestCrashEndsAllProcessesAndKeepsWhatCommitted(t *testing.T) {
	cfg := local.Config{Dir: pgtest.Dir(t)}
	s, err := local.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Port = s.Port()
	run(t, s.DSN(), "create table things (id int); insert into things values (1)")
	open := connect(t, s.DSN())
	if _, err := open.Exec(t.Context(), "begin; insert into things values (2)"); err != nil {
		t.Fatal(err)
	}
	pgtest.Crash(t, s)
	if _, err := open.Exec(t.Context(), "commit"); err == nil {
		t.Fatal("a transaction outlived its server")
	}
	if s, err = local.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Stop(context.Background()) })
	if got := ids(t, s.DSN()); len(got) != 1 || got[0] != 1 {
		t.Errorf("after the crash there are %v", got)
	}
}

func TestStandbyFollowsAndTakesOver(t *testing.T) {
	s := pgtest.Server(t, local.Config{})
	run(t, s.DSN(), "create table things (id int); insert into things values (1)")
	standby := pgtest.NewStandby(t, s, pgtest.StandbyConfig{})
	run(t, s.DSN(), "insert into things values (2)")
	eventually(t, "the replica has both rows", func() bool { return len(ids(t, standby.DSN())) == 2 })
	pgtest.Crash(t, s)
	standby.Promote(t)
	run(t, standby.DSN(), "insert into things values (3)")
	if got := ids(t, standby.DSN()); len(got) != 3 {
		t.Errorf("after the promotion there are %v", got)
	}
}

func ids(t *testing.T, dsn string) []int {
	t.Helper()
	rows, err := connect(t, dsn).Query(t.Context(), "select id from things order by id")
	if err != nil {
		t.Fatal(err)
	}
	got, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if err != nil {
		t.Fatal(err)
	}
	return got
}
