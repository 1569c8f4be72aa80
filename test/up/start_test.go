package up

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/test/proc"
)

// endPostgres kills the server as the kernel does when memory is short.
func endPostgres(t *testing.T, w *proc.Waybill) {
	t.Helper()
	pid := w.Postmaster()
	if pid == 0 {
		t.Fatal("no Postgres runs")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}

// exitCode waits for the end of the process.
func exitCode(t *testing.T, w *proc.Waybill) int {
	t.Helper()
	err := w.Wait(2 * time.Minute)
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.ExitCode()
	}
	t.Fatal(err)
	return -1
}

func TestTakenPortNamesItsFlag(t *testing.T) {
	w := proc.New(t) // one folder for all: what failed must not spoil the next
	for i, flag := range w.Args {
		if !strings.HasSuffix(flag, "listen") && flag != "--postgres-port" {
			continue
		}
		t.Run(flag, func(t *testing.T) {
			if flag == "--kafka-listen" && brokertest.Kafka() {
				t.Skip("the broker is not ours")
			}
			addr := w.Args[i+1]
			if !strings.Contains(addr, ":") {
				addr = "127.0.0.1:" + addr
			}
			l, err := net.Listen("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			if err := w.Launch(); err != nil {
				t.Fatal(err)
			}
			code, out := exitCode(t, w), w.Output()
			_ = l.Close()
			if code != 1 || !strings.Contains(out, flag) || !strings.Contains(out, proc.Port(addr)) {
				t.Errorf("exit code %d\n%s", code, out)
			}
			checkNothingRuns(t, w)
		})
	}
	w.Start()
	place(t, w)
}

func TestStopDuringStartLeavesNothing(t *testing.T) {
	w := proc.New(t)
	pg := filepath.Join(w.Dir, "postgres")
	for _, there := range []string{w.Dir, pg, filepath.Join(pg, "data", "PG_VERSION"), filepath.Join(pg, "data", "postmaster.pid")} {
		if err := os.RemoveAll(w.Dir); err != nil {
			t.Fatal(err)
		}
		if err := w.Launch(); err != nil {
			t.Fatal(err)
		}
		appears(t, there)
		w.Signal(syscall.SIGTERM)
		// It may have come up just before: then this was an orderly stop.
		if code := exitCode(t, w); code != 0 && code != 1 {
			t.Errorf("stopped when %s appeared: exit code %d\n%s", there, code, w.Output())
		}
		checkNothingRuns(t, w)
	}
	w.Start()
	place(t, w)
}

func appears(t *testing.T, path string) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for late := time.After(2 * time.Minute); ; {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("%s did not appear within two minutes", path)
		}
	}
}

func TestEverySignalThatAsksStopsInOrder(t *testing.T) {
	w := proc.New(t)
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT} {
		if sig == syscall.SIGHUP && signal.Ignored(sig) {
			continue // the tests run under nohup, and so would the program
		}
		w.Start()
		w.Signal(sig)
		if code := exitCode(t, w); code != 0 {
			t.Errorf("%s: exit code %d\n%s", sig, code, w.Output())
		}
		checkNothingRuns(t, w)
	}
}

func TestSecondSignalEndsAtOnceAndTheNextStartCleansUp(t *testing.T) {
	w := proc.Up(t)
	id := place(t, w)
	w.Signal(syscall.SIGINT)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for range 2000 { // until it has ended
		w.Signal(syscall.SIGINT)
		<-tick.C
		if w.Ended() {
			break
		}
	}
	_ = w.Wait(time.Second)
	w.Start()
	checkThere(t, w, id)
}
