package doctor

import (
	"fmt"
	"net"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestAPoolerInTheWay(t *testing.T) {
	t.Parallel()
	program := pgbouncer(t)
	direct := pgtest.New(t)
	p := healthy(t, direct)
	p.finding("pooler").is(t, OK)
	const passed = "ignore_startup_parameters = idle_in_transaction_session_timeout\n"
	for _, c := range []struct {
		mode, more string
		check      string
		want       Verdict
		say        string
	}{
		{"session", "", "database", Fail, "unsupported startup parameter"},
		{"session", passed, "pooler", Warn, "a session for each client"},
		{"session", passed, "replication", Fail, "5432"},
		{"transaction", passed, "pooler", Fail, "each transaction another session"},
		{"transaction", passed, "replication", Fail, "5432"},
	} {
		p.DatabaseURL = bounce(t, program, direct, "pool_mode = "+c.mode+"\n"+c.more)
		p.finding(c.check).is(t, c.want, c.say, "name the server itself")
	}
}

func pgbouncer(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := osexec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no pgbouncer to put in the way: apt-get install pgbouncer")
	return ""
}

// bounce has a PgBouncer stand before the server of dsn, and gives the
// connection string of the way through it.
func bounce(t *testing.T, program, dsn, settings string) string {
	t.Helper()
	c, err := pgx.ParseConfig(dsn)
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	dir := pgtest.Dir(t)
	conf := filepath.Join(dir, "pgbouncer.ini")
	text := fmt.Sprintf("[databases]\n%s = host=%s port=%d user=%s password=%s\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = %d\nunix_socket_dir =\nauth_type = any\n%s",
		c.Database, c.Host, c.Port, c.User, c.Password, port, settings)
	if err := os.WriteFile(conf, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	cmd := osexec.Command(program, conf)
	if os.Geteuid() == 0 { // which it refuses to be
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	at := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	eventually(t, "the pooler listens", func() bool {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", at)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return fmt.Sprintf("postgres://%s:x@%s/%s?sslmode=disable", c.User, at, c.Database)
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}
