//go:build unix

package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
)

// isPostmaster tells whether pid is alive and serves data. The number alone
// proves nothing: it may belong to another program by now, or to a dead child
// that nobody collected.
func isPostmaster(pid int, data string) bool {
	if err := syscall.Kill(pid, 0); err != nil && !errors.Is(err, syscall.EPERM) {
		return false
	}
	if runtime.GOOS == "linux" {
		return linuxPostmaster(pid, data)
	}
	return psPostmaster(pid, data)
}

// linuxPostmaster: the postmaster's working folder is its data. So is that of
// its backends, which alone do not make a server: their parent is it.
func linuxPostmaster(pid int, data string) bool {
	proc := "/proc/" + strconv.Itoa(pid)
	cwd, err := os.Readlink(proc + "/cwd") // fails for a zombie
	if err != nil || cwd != data {
		return false
	}
	exe, err := os.ReadFile(proc + "/comm")
	return err == nil && strings.HasPrefix(string(exe), "postgres")
}

func psPostmaster(pid int, data string) bool {
	cmd := exec.Command("ps", "-ww", "-o", "stat=,command=", "-p", strconv.Itoa(pid)) //nolint:gosec,noctx // ends by itself
	out, err := cmd.Output()
	if err != nil {
		return false
	}
	text := strings.TrimSpace(string(out))
	return !strings.HasPrefix(text, "Z") && strings.Contains(text, "postgres") && strings.Contains(text, filepath.Clean(data))
}
