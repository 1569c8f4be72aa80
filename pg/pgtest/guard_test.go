//go:build unix

package pgtest_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

const endVariable = "WAYBILL_PGTEST_END"

// TestBinaryThatEnds is run by TestNoServerOutlivesItsBinary in a process of
// its own.
func TestBinaryThatEnds(t *testing.T) {
	how := os.Getenv(endVariable)
	if how == "" {
		t.Skip("run by another test")
	}
	dsn := pgtest.New(t)
	pgtest.Dir(t)
	fmt.Println("dsn", dsn)
	switch how {
	case "panic":
		panic("as tests do")
	case "time out":
		go panic("in a goroutine of its own, as the timeout of go test does")
	case "exit":
		os.Exit(3)
	}
	select {}
}

func TestNoServerOutlivesItsBinary(t *testing.T) {
	for _, how := range []string{"pass away", "panic", "exit", "time out"} {
		t.Run(how, func(t *testing.T) {
			tmp := pgtest.Dir(t)
			dsn := runUntilEnd(t, how, tmp)
			eventually(t, "the server is gone", func() bool {
				conn, err := pgx.Connect(t.Context(), dsn)
				if err == nil {
					_ = conn.Close(t.Context())
				}
				return err != nil && strings.Contains(err.Error(), "refused")
			})
			eventually(t, "its files are gone", func() bool {
				left, err := os.ReadDir(tmp)
				return err == nil && len(left) == 0
			})
		})
	}
}

func runUntilEnd(t *testing.T, how, tmp string) (dsn string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "TestBinaryThatEnds")
	cmd.Env = append(os.Environ(), endVariable+"="+how, "TMPDIR="+tmp)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for dsn == "" && lines.Scan() {
		_, dsn, _ = strings.Cut(lines.Text(), "dsn ")
	}
	if how == "pass away" {
		_ = cmd.Process.Kill()
	}
	if err := cmd.Wait(); err == nil || dsn == "" {
		t.Fatalf("the binary ended well, with %q", dsn)
	}
	return dsn
}

func eventually(t *testing.T, claim string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("not so: %s", claim)
		case <-tick.C:
		}
	}
}

func TestLyingPidFileHarmsNobody(t *testing.T) {
	victim := exec.CommandContext(t.Context(), "sleep", "60")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Run("", func(t *testing.T) {
		dir := pgtest.Dir(t) + "/data"
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(dir+"/postmaster.pid", fmt.Appendf(nil, "%d\n", victim.Process.Pid), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	if err := victim.Process.Kill(); err != nil {
		t.Errorf("the guard killed a stranger: %v", err)
	}
	if err := victim.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the stranger ended by %v", err)
	}
}

func TestAnotherServerCanBeUsed(t *testing.T) {
	s := pgtest.Server(t, local.Config{})
	run(t, s.AdminDSN(), "alter role waybill createdb")
	c, err := pgx.ParseConfig(s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	pairs := fmt.Sprintf("host=%s port=%d user=%s password=%s dbname=%s sslmode=disable", c.Host, c.Port, c.User, c.Password, c.Database)
	for _, dsn := range []string{s.DSN(), pairs} {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "TestEach|TestRole|TestSlots")
		cmd.Env = append(os.Environ(), "WAYBILL_TEST_DATABASE_URL="+dsn)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
	}
	conn := connect(t, s.DSN())
	var left int
	if err := conn.QueryRow(t.Context(), "select count(*) from pg_database where datname like 'test%'").Scan(&left); err != nil || left != 0 {
		t.Errorf("%d databases left, %v", left, err)
	}
}
