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
// removes its files. SIGQUIT: there is nothing to keep. The pid file may lie,
// so the process is asked whether it is that server.
const guard = `
cat >/dev/null
serves() {
	if [ -d /proc/self ]; then tr '\0' ' ' <"/proc/$1/cmdline"; else ps -ww -o args= -p "$1"; fi |
		grep -qF -- "-D $2"
}
stop() {
	data=$(cd "$1/data" && pwd -P) && pid=$(head -n 1 "$data/postmaster.pid") || return
	[ "$pid" -gt 1 ] && serves "$pid" "$data" && kill -QUIT "$pid" || return
	n=0
	while serves "$pid" "$data" && [ $n -lt 200 ]; do sleep 0.05; n=$((n+1)); done
}
stop "$1" 2>/dev/null
elsewhere=$(readlink "$1/data") && rm -rf "$(dirname "$elsewhere")"
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
	if err := os.Chmod(dir, 0o711); err != nil {
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
