//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
)

// guard waits until the other end of its input closes, which the kernel does
// when the test binary is gone. It then stops the server of directory $1 and
// removes its files. SIGQUIT: there is nothing to keep.
const guard = `
cat >/dev/null
stop() {
	pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null) || return
	kill -QUIT "$pid" 2>/dev/null
	n=0
	while kill -0 "$pid" 2>/dev/null && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done
}
stop "$1"
data=$(readlink "$1/data") && rm -rf "$(dirname "$data")"
rm -rf "$1"
`

// guardedDir makes a folder whose server does not outlive this process. end
// does the guard's work now and waits for it.
func guardedDir() (dir string, end func(), err error) {
	if dir, err = os.MkdirTemp("", "waybill-pgtest-"); err != nil {
		return "", nil, fmt.Errorf("make folder: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return "", nil, fmt.Errorf("resolve folder: %w", err)
	}
	if err := os.Chmod(dir, 0o711); err != nil { //nolint:gosec // the server's user must pass through
		return "", nil, fmt.Errorf("open folder: %w", err)
	}
	in, hold, err := os.Pipe()
	if err != nil {
		return "", nil, fmt.Errorf("start guard: %w", err)
	}
	defer func() { _ = in.Close() }()
	cmd := exec.CommandContext(context.Background(), "/bin/sh", "-c", guard, "guard", dir)
	cmd.Stdin = in
	// A group of its own: a Ctrl-C must not end the guard before its work.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start guard: %w", err)
	}
	return dir, endOf(hold, cmd), nil
}

// held keeps the pipes from being collected, and so closed, while we live.
var held sync.Map

func endOf(hold io.Closer, cmd *exec.Cmd) func() {
	held.Store(hold, nil)
	return func() {
		_ = hold.Close()
		_ = cmd.Wait()
		held.Delete(hold)
	}
}
