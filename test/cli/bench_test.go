package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/test/proc"
)

func checkBench(t *testing.T, r proc.Result) {
	t.Helper()
	got := parse[map[string]json.RawMessage](t, r)
	for _, key := range []string{"name", "rate", "orders", "failed", "events_per_s", "mean_ms", "p50_ms", "p99_ms", "lost", "reordered", "duplicates"} {
		if _, ok := got[key]; !ok {
			t.Errorf("no %s", key)
		}
	}
	for _, key := range []string{"failed", "lost", "reordered", "duplicates"} {
		if string(got[key]) != "0" {
			t.Errorf("%s: %s", key, got[key])
		}
	}
	for _, key := range []string{"orders", "tracked"} {
		if string(got[key]) == "0" {
			t.Errorf("%s: none, which measures nothing", key)
		}
	}
	if t.Failed() {
		t.Log(r.Out)
	}
}

func TestBenchE2EStartsAndStopsItsOwn(t *testing.T) {
	r := proc.Run(t, "bench", "e2e", "--rate", "50", "--seconds", "2", "--json")
	checkBench(t, r)
	if n := parse[struct{ Orders int }](t, r).Orders; n != 100 {
		t.Errorf("%d orders at 50 a second in 2 s", n)
	}
}

// Ctrl-C reaches the whole group of a terminal's job, and the Waybill that is
// measured must take it once.
func TestInterruptedBenchLeavesNothing(t *testing.T) {
	dir := pgtest.Dir(t)
	cmd := exec.Command(proc.Binary(t), "bench", "e2e", "--seconds", "600")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { defer close(done); _ = cmd.Wait() }()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for up := false; !up; {
		select {
		case <-done:
			t.Fatal("ended by itself")
		case <-tick.C:
			found, _ := filepath.Glob(filepath.Join(dir, "waybill-bench-*", "data", "running.json"))
			up = len(found) > 0
		}
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(2 * time.Minute):
		t.Fatal("still there two minutes after Ctrl-C")
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	lines, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range lines {
		if b, _ := os.ReadFile(f); strings.Contains(string(b), filepath.Join(dir, "waybill-bench-")) {
			t.Errorf("still runs: %q", b)
		}
	}
}
