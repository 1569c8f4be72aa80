package relay_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/test/proc"
)

// figures are what every run tells, in mode wal none of them null.
var figures = []string{
	"events_per_s", "limit_events_per_s", "ratio",
	"events_per_s_no_marks", "limit_events_per_s_no_marks", "ratio_no_marks", "p50_ms", "p99_ms", "mean_ms",
	"sustained_written_per_s", "sustained_events_per_s", "took_s",
}

func TestRelayBenchMeasuresAndFindsNothingWrong(t *testing.T) {
	r := proc.Run(t, "bench", "relay", "--events", "2000", "--latency", "1s", "--rate", "200", "--sustained", "500ms", "--json")
	if r.Code != 0 {
		t.Fatalf("exit code %d: %s", r.Code, r.Err)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(r.Out), &got); err != nil {
		t.Fatalf("%v in %s", err, r.Out)
	}
	for _, name := range figures {
		if v, ok := got[name].(float64); !ok || v < 0 || v == 0 && !strings.HasSuffix(name, "_ms") {
			t.Errorf("%s: %v", name, got[name])
		}
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil {
		// cpu_s of so little may be less than the 10 ms in which it is counted.
		for _, name := range []string{"rss_mb", "rss_peak_mb"} {
			if v, ok := got[name].(float64); !ok || v <= 0 {
				t.Errorf("%s: %v", name, got[name])
			}
		}
	}
	for name, want := range map[string]any{
		"name": "relay", "mode": "wal", "events": 2000.0, "rate": 200.0, "lost": 0.0, "reordered": 0.0, "duplicates": 0.0,
	} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v", name, got[name], want)
		}
	}
	for _, name := range []string{"cpu_s", "events_per_cpu_s", "sustained_backlog", "postgres", "cores"} {
		if _, ok := got[name]; !ok {
			t.Errorf("no %s", name)
		}
	}
	if t.Failed() {
		t.Log(r.Out)
	}
}

func TestEngineOfSomebodysIsLeftAsItWas(t *testing.T) {
	server := pgtest.Server(t, local.Config{})
	bench := proc.Command{
		Args: []string{"bench", "relay", "--events", "200", "--latency", "0", "--sustained", "0", "--json"},
		Env:  []string{"WAYBILL_DATABASE_URL=" + server.DSN()},
	}
	if r := bench.Run(t); r.Code != 1 || !strings.Contains(r.Err, `ALTER ROLE "waybill" CREATEDB REPLICATION`) {
		t.Errorf("by a role that may not: exit code %d, %s", r.Code, r.Err)
	}
	db := connect(t, server.AdminDSN())
	if _, err := db.Exec(t.Context(), `ALTER ROLE waybill CREATEDB`); err != nil {
		t.Fatal(err)
	}
	if r := bench.Run(t); r.Code != 0 {
		t.Fatalf("exit code %d: %s", r.Code, r.Err)
	}
	var left, tables int
	err := db.QueryRow(t.Context(), `SELECT (SELECT count(*) FROM pg_database WHERE datname LIKE 'waybill\_bench\_%') +
		(SELECT count(*) FROM pg_replication_slots WHERE database LIKE 'waybill\_bench\_%'),
		(SELECT count(*) FROM pg_namespace WHERE nspname IN ('waybill', 'bench'))`).Scan(&left, &tables)
	if err != nil || left != 0 || tables != 0 {
		t.Errorf("%d databases and slots left, %d schemas in the database named: %v", left, tables, err)
	}
}

func TestMistakesOfTheCaller(t *testing.T) {
	for line, say := range map[string]string{
		"--events 0":       "--events",
		"--mode fast":      "want one of",
		"--mode eos":       "WAYBILL_KAFKA_BROKERS",
		"--rate 0":         "--rate",
		"--latency -1s":    "--latency",
		"--sustained 1000": "--sustained",
	} {
		r := proc.Run(t, append([]string{"bench", "relay"}, strings.Fields(line)...)...)
		if r.Code != 2 || !strings.Contains(r.Err, say) {
			t.Errorf("%s: exit code %d, %s", line, r.Code, r.Err)
		}
	}
}

func TestBrokerThatIsNotThereIsNamed(t *testing.T) {
	r := proc.Command{Args: []string{"bench", "relay", "--mode", "eos"}, Env: []string{"WAYBILL_KAFKA_BROKERS=127.0.0.1:1"}}.Run(t)
	if r.Code != 1 || !strings.Contains(r.Err, "no broker answers at [127.0.0.1:1], which WAYBILL_KAFKA_BROKERS") {
		t.Errorf("exit code %d, %s", r.Code, r.Err)
	}
}

func TestInterruptedBenchLeavesNothing(t *testing.T) {
	dir := pgtest.Dir(t)
	cmd := exec.Command(proc.Binary(t), "bench", "relay", "--events", "20000000")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out strings.Builder // read once it has ended
	cmd.Stdout, cmd.Stderr = &out, &out
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
			t.Fatal("ended by itself: ", out.String())
		case <-tick.C:
			found, _ := filepath.Glob(filepath.Join(dir, "waybill-bench-*", "postgres", "data", "pg_replslot", "*"))
			up = len(found) > 0
		}
	}
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	select {
	case <-done:
	case <-time.After(3 * time.Minute):
		t.Fatal("still there 45 s after Ctrl-C")
	}
	if said := out.String(); !strings.Contains(said, "interrupted") || cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("exit code %d, said %s", cmd.ProcessState.ExitCode(), said)
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
