package proc

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Binary is the program, gone with the test binary: a copy of the one that
// WAYBILL_TEST_PROGRAM names, as make test does, or else built.
func Binary(t testing.TB) string {
	t.Helper()
	b, err := build()
	if err != nil {
		t.Fatal(err)
	}
	return b.path
}

// binary holds on to its guard: collected, it would close the guard's input.
type binary struct {
	path string
	end  func()
}

var build = sync.OnceValues(func() (b binary, err error) {
	dir, err := os.MkdirTemp("", "waybill-bin-")
	if err != nil {
		return b, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // other users run it, too
		return b, err
	}
	if b.end, err = guard(`read -r word; rm -rf "$1"`, dir, ""); err != nil {
		return b, err
	}
	b.path = filepath.Join(dir, "waybill")
	if given := os.Getenv("WAYBILL_TEST_PROGRAM"); given != "" {
		program, err := os.ReadFile(given)
		if err != nil {
			return b, err
		}
		return b, os.WriteFile(b.path, program, 0o755)
	}
	cmd := exec.Command("go", "build", "-o", b.path, "github.com/waybillhq/waybill/cmd/waybill")
	if out, err := cmd.CombinedOutput(); err != nil {
		return b, fmt.Errorf("build: %w\n%s", err, out)
	}
	return b, nil
})

// environment is this process's without what configures Waybill: a test says
// itself what its program is to see.
func environment(more ...string) []string {
	var env []string
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "WAYBILL_") {
			env = append(env, v)
		}
	}
	return append(env, more...)
}
