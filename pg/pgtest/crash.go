//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/waybillhq/waybill/pg/local"
)

// Crash ends every process of s at once, as the loss of its machine would, and
// returns when none is left: what was written stays, what was only in memory is
// gone. local.Start with the same Dir and Port brings the server back, which
// then recovers.
func Crash(t testing.TB, s *local.Server) {
	t.Helper()
	if err := TryCrash(s); err != nil {
		t.Fatalf("pgtest: %v", err)
	}
}

// TryCrash is Crash for a goroutine that may not end its test.
func TryCrash(s *local.Server) error {
	err := killAll(s.PID(), s.DataDir())
	// It ended already; what is left to do is to let go of the folder.
	return errors.Join(err, s.Stop(context.Background()))
}

// killAll kills the postmaster and its children. The postmaster is stopped
// first: it would otherwise see its children die, and put things in order.
func killAll(postmaster int, data string) error {
	if err := syscall.Kill(postmaster, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("stop server %d: %w", postmaster, err)
	}
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		pids, err := processesOf(postmaster, data)
		if err != nil {
			return fmt.Errorf("find the processes of server %d: %w", postmaster, err)
		}
		if len(pids) == 0 {
			return nil
		}
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		time.Sleep(2 * time.Millisecond)
	}
	return fmt.Errorf("server %d does not die", postmaster)
}

// processesOf lists who works on data: all of a server's processes have it as
// their working folder, also those whose postmaster is dead. The dead
// themselves have none.
func processesOf(postmaster int, data string) ([]int, error) {
	entries, err := os.ReadDir("/proc/self")
	if err != nil || len(entries) == 0 {
		return childrenOf(postmaster)
	}
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		return nil, err
	}
	var pids []int
	for _, link := range links {
		if cwd, err := os.Readlink(link); err != nil || cwd != data {
			continue
		}
		if pid, err := strconv.Atoi(strings.Split(link, "/")[2]); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// childrenOf is for systems without /proc.
func childrenOf(postmaster int) ([]int, error) {
	out, err := exec.CommandContext(context.Background(), "ps", "-A", "-o", "pid=,ppid=,stat=").Output()
	if err != nil {
		return nil, err
	}
	var pids []int
	for line := range strings.Lines(string(out)) {
		var pid, parent int
		var stat string
		if _, err := fmt.Sscan(line, &pid, &parent, &stat); err != nil || strings.HasPrefix(stat, "Z") {
			continue
		}
		if pid == postmaster || parent == postmaster {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}
