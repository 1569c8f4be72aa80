package child

import (
	"os"
	"testing"
	"time"
)

func TestFamilyCountsChildrenThatLiveAndThatHaveEnded(t *testing.T) {
	p := sh(t, `trap 'kill $!; wait; exit 0' INT; i=0; (while [ $i -lt 200000 ]; do i=$((i+1)); done); echo ended; while :; do :; done & wait`)
	for p.Said() == "" {
		select {
		case <-p.Done():
			t.Fatal(p.Ended())
		case <-time.After(5 * time.Millisecond):
		}
	}
	pid := p.cmd.Process.Pid
	own, known := timesOf(pid)
	if !known {
		t.Skip("no /proc here")
	}
	if own.gone == 0 || own.parent != os.Getpid() {
		t.Errorf("%+v", own)
	}
	for seconds := 0.0; seconds < float64(own.self+own.gone)/100+0.1; {
		select {
		case <-p.Done():
			t.Fatal(p.Ended())
		case <-time.After(5 * time.Millisecond):
		}
		if seconds, known = FamilyCPU(pid); !known {
			t.Fatal("gone")
		}
	}
}

func TestKilledProgramIsGoneAtOnce(t *testing.T) {
	p := sh(t, `trap 'echo asked' INT TERM; echo up; while :; do sleep 0.05; done`)
	for p.Said() == "" {
		select {
		case <-p.Done():
			t.Fatal(p.Ended())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := p.Kill(); err != nil || p.Said() != "up\n" {
		t.Errorf("%v, said %q", err, p.Said())
	}
	if err := p.Stop(); err != nil {
		t.Error("a stop after it:", err)
	}
}
