// Package interop runs other people's clients, as processes of their own,
// against our broker and registry, and ours against another registry.
//
// Its tests are no part of `make test`: they fetch what they need and need
// Python, a JDK and kcat. WAYBILL_INTEROP asks for them, and where it says
// "required", as `make test-interop` has it, a missing client is a failure.
package interop

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

const variable = "WAYBILL_INTEROP"

// asked skips a test that nobody asked for.
func asked(t *testing.T) {
	t.Helper()
	if os.Getenv(variable) == "" {
		t.Skip("other people's clients are run by `make test-interop`")
	}
}

// missing ends a test whose client is not there.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv(variable) == "required" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// command is a program of the machine.
func command(t *testing.T, name, pkg string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "no %s; install it: apt-get install %s", name, pkg)
	}
	return path
}

var parts = map[string]func() (dir, why string){
	"python":   sync.OnceValues(func() (string, string) { return fetch("python") }),
	"java":     sync.OnceValues(func() (string, string) { return fetch("java") }),
	"apicurio": sync.OnceValues(func() (string, string) { return fetch("apicurio") }),

	"webhooks-python": sync.OnceValues(func() (string, string) { return fetch("webhooks-python") }),
	"webhooks-node":   sync.OnceValues(func() (string, string) { return fetch("webhooks-node") }),
}

// part is the directory of what setup.sh fetches, once for the test binary.
func part(t *testing.T, name string) string {
	t.Helper()
	dir, why := parts[name]()
	if dir == "" {
		missing(t, "%s is not to be had: %s", name, why)
	}
	return dir
}

func fetch(name string) (dir, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "./setup.sh", name)
	cmd.WaitDelay = time.Second
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", err.Error() + ": " + stderr.String()
	}
	return strings.TrimSpace(string(out)), ""
}

// run runs a client to its end, at most two minutes, and returns what it
// printed, also if it failed.
func run(t *testing.T, stdin, name string, args ...string) (out string, failed bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.WaitDelay = time.Second
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		t.Fatalf("%s %s did not end: %s%s", filepath.Base(name), strings.Join(args, " "), &stdout, &stderr)
	}
	if err != nil {
		return stdout.String() + stderr.String(), true
	}
	return stdout.String(), false
}
