package child

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Usage is what a program has cost so far.
type Usage struct {
	Known bool    // false where the system has no /proc; the rest is then zero
	CPU   float64 // seconds of processor time, user and system, in steps of 10 ms
	RSS   float64 // resident memory in MB of 10^6 bytes
	Peak  float64 // the most it has been, in MB
}

// Usage reads what the program has cost; after its end that is unknown.
func (p *Process) Usage() Usage { return UsageOf(p.cmd.Process.Pid) }

// UsageOf is what a process has cost so far, such as our own.
func UsageOf(pid int) (u Usage) {
	root := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(root, "stat"))
	if err != nil {
		return u
	}
	status, err := os.ReadFile(filepath.Join(root, "status"))
	if err != nil {
		return u
	}
	// Behind the name, which may hold spaces: fields 14 and 15 are user and
	// system time in ticks of 10 ms.
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(f) < 13 {
		return u
	}
	user, uerr := strconv.ParseFloat(f[11], 64)
	system, serr := strconv.ParseFloat(f[12], 64)
	u.RSS, u.Peak = megabytes(status, "VmRSS:"), megabytes(status, "VmHWM:")
	// A process that has ended and is not yet waited for has times and no memory.
	u.Known = uerr == nil && serr == nil && u.RSS > 0
	u.CPU = (user + system) / 100
	return u
}

// megabytes is the value of a line of /proc/PID/status, which is in kB of 1024
// bytes.
func megabytes(status []byte, name string) float64 {
	_, rest, _ := bytes.Cut(status, []byte(name))
	line, _, _ := bytes.Cut(rest, []byte("\n"))
	f := strings.Fields(string(line))
	if len(f) == 0 {
		return 0
	}
	kb, _ := strconv.ParseFloat(f[0], 64)
	return kb * 1024 / 1e6
}
