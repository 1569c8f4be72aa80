package child

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// FamilyCPU is the seconds of processor time that a process and its children
// have taken so far, those that have ended and were waited for among them: of a
// Postgres, all its backends. It is false where the system has no /proc.
func FamilyCPU(pid int) (seconds float64, known bool) {
	own, ok := timesOf(pid)
	if !ok {
		return 0, false
	}
	ticks := own.self + own.gone
	all, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return 0, false
	}
	for _, dir := range all {
		id, err := strconv.Atoi(filepath.Base(dir))
		if err != nil {
			continue
		}
		// What has ended meanwhile is counted next time, with those that are gone.
		if t, ok := timesOf(id); ok && t.parent == pid {
			ticks += t.self
		}
	}
	return float64(ticks) / 100, true
}

// ParentOf is the process that started pid.
func ParentOf(pid int) (int, bool) {
	t, ok := timesOf(pid)
	return t.parent, ok
}

// times are in ticks of 10 ms, user and system.
type times struct {
	parent     int
	self, gone int64 // its own; of children that ended
}

func timesOf(pid int) (t times, known bool) {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return t, false
	}
	f := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // behind the name, which may hold spaces
	if len(f) < 15 {
		return t, false
	}
	var n [15]int64
	for _, i := range []int{1, 11, 12, 13, 14} {
		if n[i], err = strconv.ParseInt(f[i], 10, 64); err != nil {
			return t, false
		}
	}
	return times{parent: int(n[1]), self: n[11] + n[12], gone: n[13] + n[14]}, true
}
