//go:build unix

package pgtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg/local"
)

// Standby is a streaming replica, on this machine, of a server that a test
// started.
type Standby struct {
	Port  int
	admin string // connection string
	app   string
}

// StandbyConfig is what may be set; its zero value works.
type StandbyConfig struct {
	// SyncSlots copies the primary's failover slots (Postgres 17 and later).
	SyncSlots bool
}

// standbySlot is the physical slot the replica reads from.
const standbySlot = "pgtest_standby"

// NewStandby copies primary while it runs and returns once the replica answers.
// It is made by the low-level interface for backups: pg_basebackup is not among
// the programs that fetch.sh fetches.
func NewStandby(t testing.TB, primary *local.Server, cfg StandbyConfig) *Standby {
	t.Helper()
	programs, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", primary.PID()))
	if err != nil {
		t.Skipf("pgtest: a replica runs the programs of its primary, found through /proc: %v", err)
	}
	s := &Standby{Port: freePort(t)}
	s.admin, s.app = onPort(primary.AdminDSN(), s.Port), onPort(primary.DSN(), s.Port)
	data := filepath.Join(Dir(t), "data")
	if err := copyServer(t.Context(), primary, data); err != nil {
		t.Fatalf("pgtest: copy server: %v", err)
	}
	if err := s.configure(primary, data, cfg); err != nil {
		t.Fatalf("pgtest: configure replica: %v", err)
	}
	s.run(t, programs, data)
	return s
}

// DSN is the connection string of the application's role.
func (s *Standby) DSN() string { return s.app }

// AdminDSN is the connection string of the superuser.
func (s *Standby) AdminDSN() string { return s.admin }

// Promote makes the replica a server of its own and returns once it takes
// writes.
func (s *Standby) Promote(t testing.TB) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), s.admin)
	if err != nil {
		t.Fatalf("pgtest: promote: %v", err)
	}
	defer func() { _ = conn.Close(context.Background()) }()
	var done bool
	if err := conn.QueryRow(t.Context(), `select pg_promote(true, 60)`).Scan(&done); err != nil || !done {
		t.Fatalf("pgtest: promote: %v, %v", done, err)
	}
}

// copyServer is a backup: what the files lack for being copied one after the
// other, the replica reads from the WAL that the slot keeps.
func copyServer(ctx context.Context, primary *local.Server, data string) error {
	conn, err := pgx.Connect(ctx, primary.AdminDSN())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	_, err = conn.Exec(ctx, `select pg_create_physical_replication_slot($1, true)`, standbySlot)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `select pg_backup_start('standby', true)`); err != nil {
		return err
	}
	if err := copyData(primary.DataDir(), data); err != nil {
		return err
	}
	var label string
	err = conn.QueryRow(ctx, `select labelfile from pg_backup_stop(wait_for_archive => false)`).Scan(&label)
	if err != nil {
		return err
	}
	return writeAs(data, "backup_label", label)
}

// leftOut are folders whose contents are the running server's own.
var leftOut = map[string]bool{
	"pg_wal": true, "pg_replslot": true, "pg_dynshmem": true, "pg_notify": true, "pg_serial": true,
	"pg_snapshots": true, "pg_stat_tmp": true, "pg_subtrans": true,
}

// copyData copies files and their owner. One that goes meanwhile is none.
func copyData(from, to string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if strings.HasPrefix(name, "postmaster.") || leftOut[strings.Split(name, "/")[0]] && strings.Contains(name, "/") {
			if d.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if err := copyOne(path, filepath.Join(to, name), d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
}

func copyOne(from, to string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	if d.IsDir() {
		err = os.Mkdir(to, info.Mode().Perm())
	} else {
		err = copyFile(from, to)
	}
	if err != nil {
		return err
	}
	return chown(to, info)
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

func chown(path string, info fs.FileInfo) error {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) == os.Geteuid() {
		return nil
	}
	return os.Chown(path, int(st.Uid), int(st.Gid))
}

// writeAs writes a file of the data folder for its owner.
func writeAs(data, name, text string) error {
	path := filepath.Join(data, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	info, err := os.Stat(data)
	if err != nil {
		return err
	}
	return chown(path, info)
}

func (s *Standby) configure(primary *local.Server, data string, cfg StandbyConfig) error {
	c, err := pgx.ParseConfig(primary.AdminDSN())
	if err != nil {
		return err
	}
	settings := map[string]string{
		"port": strconv.Itoa(s.Port), "hot_standby": "on", "hot_standby_feedback": "on",
		"wal_receiver_status_interval": "1s", "wal_retrieve_retry_interval": "200ms", "primary_slot_name": standbySlot,
		"primary_conninfo": fmt.Sprintf("host=127.0.0.1 port=%d user=%s password=%s dbname=%s application_name=%s",
			c.Port, c.User, c.Password, c.Database, standbySlot),
	}
	if cfg.SyncSlots {
		settings["sync_replication_slots"] = "on"
	}
	var b strings.Builder
	for name, value := range settings {
		fmt.Fprintf(&b, "%s = '%s'\n", name, value)
	}
	if err := writeAs(data, "standby.signal", ""); err != nil {
		return err
	}
	// Later lines win, those of postgresql.auto.conf over all others.
	return writeAs(data, "postgresql.auto.conf", b.String())
}

// run starts the server, which ends with t.
func (s *Standby) run(t testing.TB, programs, data string) {
	t.Helper()
	info, err := os.Stat(data)
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(context.Background(), programs, "-D", data)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", &log, &log
	cmd.Env = []string{"LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && os.Geteuid() == 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: st.Uid, Gid: st.Gid, Groups: []uint32{}}
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("pgtest: start replica: %v", err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // what it has to say is in its log
		close(ended)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGQUIT)
		<-ended
		if t.Failed() {
			t.Logf("log of the replica:\n%s", &log)
		}
	})
	s.await(t, ended, &log)
}

func (s *Standby) await(t testing.TB, ended chan struct{}, log *bytes.Buffer) {
	t.Helper()
	late := time.After(3 * time.Minute)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := pgx.Connect(t.Context(), s.admin)
		if err == nil {
			_ = conn.Close(t.Context())
			return
		}
		select {
		case <-ended:
			t.Fatalf("pgtest: the replica ended while starting\n%s", log)
		case <-late:
			t.Fatalf("pgtest: the replica does not answer within three minutes: %v", err)
		case <-tick.C:
		}
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("pgtest: %v", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port
}

// onPort is dsn, a URL of local.Server, for another port.
func onPort(dsn string, port int) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return dsn
	}
	u.Host = net.JoinHostPort(u.Hostname(), strconv.Itoa(port))
	return u.String()
}
