package up

import (
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/waybillhq/waybill/test/proc"
)

// move has w live in another folder.
func move(w *proc.Waybill, dir string) {
	w.Dir, w.Args[2] = dir, dir
}

func TestDeepFolder(t *testing.T) {
	w := proc.New(t)
	deep := w.Dir
	for range 8 { // deeper than the path of a socket may be long
		deep = filepath.Join(deep, strings.Repeat("a folder ", 3)+"é")
	}
	move(w, deep)
	w.Start()
	place(t, w)
	if err := w.Stop(); err != nil {
		t.Error(err)
	}
	checkNothingRuns(t, w)
}

func TestFolderThatCannotBe(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		r := proc.Run(t, "up", "--dir", dir)
		if r.Code != 1 || !strings.Contains(r.Err, dir) || !strings.Contains(r.Err, "--dir") {
			t.Errorf("--dir %s: %d\n%s", dir, r.Code, r.Err)
		}
	}
}

// another is a user without rights.
func another(t *testing.T) *syscall.Credential {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root runs programs as somebody else")
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skip("no user nobody")
	}
	uid, _ := strconv.ParseUint(u.Uid, 10, 32)
	gid, _ := strconv.ParseUint(u.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func TestRunsWithoutRoot(t *testing.T) {
	w := proc.New(t)
	w.User = another(t)
	t.Run("in another's folder it is refused", func(t *testing.T) {
		if err := w.Launch(); err != nil {
			t.Fatal(err)
		}
		if code := exitCode(t, w); code != 1 || !strings.Contains(w.Output(), "--dir") {
			t.Errorf("exit code %d\n%s", code, w.Output())
		}
	})
	if err := os.Mkdir(w.Dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(w.Dir, int(w.User.Uid), int(w.User.Gid)); err != nil {
		t.Fatal(err)
	}
	w.Start()
	id := place(t, w)
	w.Kill()
	w.Start()
	checkThere(t, w, id)
	if err := w.Stop(); err != nil {
		t.Errorf("stop: %v\n%s", err, w.Output())
	}
	checkNothingRuns(t, w)
}
