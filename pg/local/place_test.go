//go:build unix

package local_test

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestDataMovesWhereTheServersUserCanReachIt(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root runs the server as another user")
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	dir, refuge := filepath.Join(closed, "dir"), pgtest.Dir(t)
	cfg := local.Config{Dir: dir, Logger: slog.New(slog.NewTextHandler(&log, nil))}.Elsewhere(refuge)
	s := start(t, cfg)
	if !strings.HasPrefix(s.DataDir(), refuge) || !strings.Contains(log.String(), s.DataDir()) {
		t.Errorf("data in %s, said: %s", s.DataDir(), log.String())
	}
	exec1(t, s.DSN(), "create table things as select 7 as id")
	stop(t, s)
	moved := filepath.Join(closed, "moved")
	if err := os.Rename(dir, moved); err != nil {
		t.Fatal(err)
	}
	fresh := start(t, cfg)
	if fresh.DataDir() == s.DataDir() {
		t.Fatal("a new directory took the data of the moved one")
	}
	cfg.Dir = moved
	again := start(t, cfg)
	if again.DataDir() != s.DataDir() || ask[int](t, again.DSN(), "select id from things") != 7 {
		t.Error("the moved directory lost its data")
	}
}

func TestDataOfAnotherVersionIsRefused(t *testing.T) {
	for _, version := range []string{"13\n", "16\n", "9.6\n", "new"} {
		dir := pgtest.Dir(t)
		if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{"data/PG_VERSION": version, "credentials.json": `{"admin":"a","application":"b"}`} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		_, err := local.Start(t.Context(), local.Config{Dir: dir, DownloadTimeout: -1})
		if !errors.Is(err, local.ErrVersion) || !strings.Contains(err.Error(), strings.TrimSpace(version)) {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestLostPasswordsAreNamed(t *testing.T) {
	dir := prepared(t)
	stop(t, start(t, local.Config{Dir: dir}))
	path := filepath.Join(dir, "credentials.json")
	for _, damage := range []func() error{
		func() error { return os.WriteFile(path, []byte("{}"), 0o600) },
		func() error { return os.Remove(path) },
	} {
		if err := damage(); err != nil {
			t.Fatal(err)
		}
		if _, err := local.Start(t.Context(), local.Config{Dir: dir}); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("got %v", err)
		}
	}
}

func TestInterruptedInitdbIsBegunAnew(t *testing.T) {
	t.Parallel()
	dir := pgtest.Dir(t)
	left := filepath.Join(dir, "init-123")
	if err := os.MkdirAll(filepath.Join(left, "data", "base"), 0o700); err != nil {
		t.Fatal(err)
	}
	s := start(t, local.Config{Dir: dir})
	if _, err := os.Stat(left); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("leftovers stay: %v", err)
	}
	exec1(t, s.DSN(), "create table things (id int)")
}

func TestGrownLogIsSetAside(t *testing.T) {
	t.Parallel()
	dir := prepared(t)
	path := filepath.Join(dir, "postgres.log")
	if err := os.WriteFile(path, make([]byte, 11<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	start(t, local.Config{Dir: dir})
	now, err := os.Stat(path)
	if err != nil || now.Size() > 1<<20 {
		t.Errorf("log has %d bytes, %v", now.Size(), err)
	}
	if old, err := os.Stat(path + ".old"); err != nil || old.Size() != 11<<20 {
		t.Errorf("old log: %v", err)
	}
}

func TestMachineWithoutPostgresIsToldHowToGetIt(t *testing.T) {
	_, err := local.Start(t.Context(), local.Config{Dir: pgtest.Dir(t), CacheDir: t.TempDir(), DownloadTimeout: -1}.Folders())
	if err == nil || !strings.Contains(err.Error(), "install") {
		t.Errorf("got %v", err)
	}
}

func TestNamedFolderWithoutPostgresIsRefused(t *testing.T) {
	empty := t.TempDir()
	_, err := local.Start(t.Context(), local.Config{Dir: pgtest.Dir(t), Binaries: empty})
	if err == nil || !strings.Contains(err.Error(), empty) {
		t.Errorf("got %v", err)
	}
}

func TestBinariesFetchedEarlierAreUsed(t *testing.T) {
	t.Parallel()
	bin, cache := installedFolder(t), t.TempDir()
	if err := os.MkdirAll(filepath.Join(cache, "17.5.0"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(bin, filepath.Join(cache, "17.5.0", "bin")); err != nil {
		t.Fatal(err)
	}
	s := start(t, local.Config{Dir: pgtest.Dir(t), CacheDir: cache, DownloadTimeout: time.Nanosecond}.Folders())
	exec1(t, s.DSN(), "select 1")
}

// installedFolder is where the programs really are.
func installedFolder(t *testing.T) string {
	t.Helper()
	s := start(t, local.Config{Dir: prepared(t)})
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d", s.PID()) + "/exe")
	if err != nil {
		t.Skip("cannot tell which program runs here")
	}
	return filepath.Dir(exe)
}
