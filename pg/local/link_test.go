//go:build unix

package local_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// The data is the server's user's. What that user puts there must not steer what
// we write, and give away, as root.
func TestLinksInTheDataLeadUsNowhere(t *testing.T) {
	dir, victim := pgtest.Dir(t), filepath.Join(t.TempDir(), "shadow")
	s := start(t, local.Config{Dir: dir})
	data := s.DataDir()
	stop(t, s)
	if err := os.WriteFile(victim, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(victim)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(victim, filepath.Join(data, "waybill.conf.new")); err != nil {
		t.Fatal(err)
	}
	stop(t, start(t, local.Config{Dir: dir}))
	for _, name := range []string{"waybill.conf", "postgresql.conf"} {
		path := filepath.Join(data, name)
		if err := os.Rename(path, path+".kept"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(victim, path); err != nil {
			t.Fatal(err)
		}
	}
	if again, err := local.Start(t.Context(), local.Config{Dir: dir}); err == nil {
		stop(t, again)
		t.Error("started with settings that lie elsewhere")
	}
	after, err := os.Stat(victim)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(victim)
	if err != nil || string(text) != "secret\n" || owner(after) != owner(before) || after.Mode() != before.Mode() {
		t.Errorf("through the link: %q, of %d, %v", text, owner(after), err)
	}
}

func owner(info os.FileInfo) uint32 { return info.Sys().(*syscall.Stat_t).Uid }
