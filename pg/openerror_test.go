package pg

import (
	"errors"
	"testing"
)

func TestACauseIsToldOnce(t *testing.T) {
	cause := errors.New("failed to connect to `user=a`:\n\tone: refused\n\tone: refused\n\ttwo: no route")
	err := openError{cause}
	if got, want := err.Error(), "failed to connect to `user=a`: one: refused; two: no route"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if !errors.Is(err, cause) {
		t.Error("the cause is not found in it")
	}
	if got := (openError{errors.New("plain")}).Error(); got != "plain" {
		t.Errorf("%q", got)
	}
}
