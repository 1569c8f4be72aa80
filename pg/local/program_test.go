//go:build unix

package local

import (
	"path/filepath"
	"testing"
)

func TestProgramStandsBesideTheServer(t *testing.T) {
	path, err := Program(t.Context(), "pg_ctl")
	if err != nil {
		t.Fatal(err)
	}
	for b := range usable(t.Context(), []string{filepath.Dir(path)}) {
		if b.path("pg_ctl") == path {
			return
		}
	}
	t.Errorf("%s stands beside no server", path)
}

func TestProgramThatIsNowhereIsNamed(t *testing.T) {
	if path, err := Program(t.Context(), "pg_nosuchprogram"); err == nil {
		t.Errorf("found %s", path)
	}
}
