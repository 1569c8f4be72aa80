package proc

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// Command is one run of the program that ends by itself.
type Command struct {
	Args  []string
	Env   []string // NAME=VALUE, added to an environment without any WAYBILL_
	Dir   string   // working directory; a new one if empty
	Stdin string
}

// Result is how it ended.
type Result struct {
	Out, Err string
	Code     int
}

// Run runs the program with args and waits for its end, at most a minute.
func Run(t testing.TB, args ...string) Result {
	t.Helper()
	return Command{Args: args}.Run(t)
}

// Run runs the command and waits for its end, at most a minute.
func (c Command) Run(t testing.TB) Result {
	t.Helper()
	program := Binary(t) // which takes minutes to build where nothing is cached
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, c.Args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 20 * time.Second
	if cmd.Dir = c.Dir; cmd.Dir == "" {
		cmd.Dir = t.TempDir()
	}
	cmd.Env, cmd.Stdin = environment(c.Env...), strings.NewReader(c.Stdin)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("waybill %s: %v\n%s%s", strings.Join(c.Args, " "), err, &out, &errOut)
	}
	return Result{Out: out.String(), Err: errOut.String(), Code: cmd.ProcessState.ExitCode()}
}
