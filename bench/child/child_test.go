package child

import (
	"strings"
	"testing"
	"time"
)

func sh(t *testing.T, script string) *Process {
	t.Helper()
	p, err := Start(t.Context(), "the script", "/bin/sh", []string{"-c", script}, []string{"WORD=told"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Stop() })
	return p
}

func TestFailureTellsWhatTheProgramSaidLast(t *testing.T) {
	p := sh(t, `echo out; echo "$WORD" >&2; exit 3`)
	err := p.Ended()
	for _, say := range []string{"the script", "exit status 3", "out\n", "told"} {
		if !strings.Contains(err.Error(), say) {
			t.Errorf("%q does not say %q", err, say)
		}
	}
}

func TestProgramThatEndsByItselfIsAFailure(t *testing.T) {
	if err := sh(t, "exit 0").Ended(); !strings.Contains(err.Error(), "by itself") {
		t.Error(err)
	}
}

func TestStopAsksInOrder(t *testing.T) {
	p := sh(t, `trap 'echo asked; exit 0' INT; echo up; while :; do sleep 0.05; done`)
	for p.Said() == "" {
		select {
		case <-p.Done():
			t.Fatal(p.Ended())
		case <-time.After(5 * time.Millisecond):
		}
	}
	if err := p.Stop(); err != nil || p.Said() != "up\nasked\n" {
		t.Errorf("%v, said %q", err, p.Said())
	}
	if err := p.Stop(); err != nil {
		t.Error("a second time:", err)
	}
}

func TestUsageGrowsAndIsUnknownAfterTheEnd(t *testing.T) {
	p := sh(t, `while :; do :; done`)
	for u := p.Usage(); u.CPU == 0; u = p.Usage() {
		select {
		case <-p.Done():
			t.Fatal(p.Ended())
		case <-time.After(5 * time.Millisecond):
		}
		if !u.Known {
			t.Skip("no /proc here")
		}
	}
	if u := p.Usage(); u.RSS <= 0 || u.Peak < u.RSS {
		t.Errorf("%+v", u)
	}
	_ = p.Stop() // it dies of the signal
	if u := p.Usage(); u.Known {
		t.Errorf("after the end: %+v", u)
	}
}

func TestOnlyTheEndOfALongTaleIsKept(t *testing.T) {
	var tl tail
	for range 100 {
		_, _ = tl.Write([]byte(strings.Repeat("x", 1000)))
	}
	_, _ = tl.Write([]byte("end"))
	if s := tl.String(); len(s) != kept || !strings.HasSuffix(s, "xend") {
		t.Errorf("%d bytes", len(s))
	}
}
