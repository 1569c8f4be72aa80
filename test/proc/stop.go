package proc

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// Kill ends the process as kill -9 does. Its Postgres lives on.
func (w *Waybill) Kill() {
	_ = w.cmd.Process.Kill()
	<-w.done
}

// Stop asks for an orderly stop, as Ctrl-C in a terminal does, and returns how
// the process ended.
func (w *Waybill) Stop() error {
	// To its whole group: that is what a terminal does.
	_ = syscall.Kill(-w.cmd.Process.Pid, syscall.SIGINT)
	return w.Wait(2 * time.Minute)
}

// Signal sends sig to the process alone.
func (w *Waybill) Signal(sig os.Signal) { _ = w.cmd.Process.Signal(sig) }

// Wait waits for the end of the process and returns how it ended.
func (w *Waybill) Wait(atMost time.Duration) error {
	select {
	case <-w.done:
	case <-time.After(atMost):
		w.Kill()
		return fmt.Errorf("did not end within %s\n%s", atMost, w.out)
	}
	return w.err
}

// Postmaster is the pid of the Postgres whose files the folder has, 0 if none
// runs.
func (w *Waybill) Postmaster() int {
	data := filepath.Join(w.Dir, "postgres", "data")
	b, err := os.ReadFile(filepath.Join(data, "postmaster.pid"))
	if err != nil {
		return 0
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	pid, err := strconv.Atoi(string(bytes.TrimSpace(line)))
	if err != nil || pid < 2 || !serves(pid, data) {
		return 0
	}
	return pid
}

// serves asks the process itself: a pid file may outlive its process, and the
// pid then be anybody's. A server's working directory is its data.
func serves(pid int, data string) bool {
	cwd, err := os.Readlink(fmt.Sprintf("/proc/%d/cwd", pid))
	if os.IsNotExist(err) {
		return false
	}
	if err != nil { // no /proc, or another user's
		return syscall.Kill(pid, 0) == nil
	}
	real, err := filepath.EvalSymlinks(data)
	return err == nil && cwd == real
}

// end is the cleanup of every Waybill.
func (w *Waybill) end() {
	if w.cmd == nil {
		return
	}
	select {
	case <-w.done: // killed, stopped or failed
	default:
		if err := w.Stop(); err != nil && !w.t.Failed() {
			w.t.Errorf("stop: %v", err)
		}
	}
	w.endOrphan()
	if w.t.Failed() {
		w.t.Logf("output of waybill %s:\n%s", w.Args[0], tail(w.out.String(), 8000))
	}
}

// endOrphan ends the Postgres that a killed process left. Its folder goes next.
func (w *Waybill) endOrphan() {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		pid := w.Postmaster()
		if pid == 0 {
			return
		}
		_ = syscall.Kill(pid, syscall.SIGQUIT)
		<-tick.C
	}
	w.t.Error("an orphaned Postgres does not end")
}

// Ended tells whether the process has ended.
func (w *Waybill) Ended() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// Done is closed when the process of the last start has ended.
func (w *Waybill) Done() <-chan struct{} { return w.done }

// Process is the pid of the last start.
func (w *Waybill) Process() int { return w.cmd.Process.Pid }
