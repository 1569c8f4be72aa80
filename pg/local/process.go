//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// process is a postmaster: our child, or one that another process left.
type process struct {
	pid   int
	data  string
	child bool

	mu     sync.Mutex
	reaped bool
	status syscall.WaitStatus
}

// spawn starts the server in a process group of its own: a Ctrl-C in the
// terminal must reach us, who stop it in order, and not every process at once.
func spawn(ctx context.Context, bin binaries, data string, own *owner, log *os.File) (*process, error) {
	// Not bound to ctx: the server ends by Stop.
	cmd := exec.CommandContext(context.WithoutCancel(ctx), bin.path("postgres"), "-D", data) //nolint:gosec // a found program
	cmd.Dir, cmd.Env = "/", cleanEnv()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = own.attr()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start server: %w", err)
	}
	p := &process{pid: cmd.Process.Pid, data: data, child: true}
	// exited reaps the child itself: a Wait here could not be given up,
	// and Detach has to.
	return p, cmd.Process.Release()
}

// exited tells whether the server is gone, and how it went.
func (p *process) exited() (bool, error) {
	if !p.child {
		return !isPostmaster(p.pid, p.data), nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		pid, err := syscall.Wait4(p.pid, &p.status, syscall.WNOHANG, nil)
		p.reaped = pid == p.pid || errors.Is(err, syscall.ECHILD)
	}
	if !p.reaped {
		return false, nil
	}
	if p.status.Signaled() {
		return true, fmt.Errorf("killed by %s", p.status.Signal())
	}
	return true, fmt.Errorf("exit status %d", p.status.ExitStatus())
}

func (p *process) signal(sig syscall.Signal) error {
	if gone, _ := p.exited(); gone {
		return nil
	}
	if err := syscall.Kill(p.pid, sig); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("signal server %d: %w", p.pid, err)
	}
	return nil
}

// shutdown asks for a fast shutdown and, when that takes longer than patience
// or ctx, for an immediate one, which loses nothing but leaves recovery to the
// next start. A replication client that reads no more can hold the former up.
func (p *process) shutdown(ctx context.Context, patience time.Duration) error {
	if err := p.signal(syscall.SIGINT); err != nil {
		return err
	}
	if p.awaitExit(ctx, patience) {
		return nil
	}
	if err := p.signal(syscall.SIGQUIT); err != nil {
		return err
	}
	if p.awaitExit(context.WithoutCancel(ctx), 6*time.Second) {
		return nil
	}
	// Its other processes see it gone and end by themselves.
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if p.awaitExit(context.WithoutCancel(ctx), 2*time.Second) {
		return nil
	}
	return fmt.Errorf("server %d did not end, not even by SIGKILL", p.pid)
}

func (p *process) awaitExit(ctx context.Context, patience time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := poll(ctx, 2*time.Millisecond, func() (bool, error) {
		gone, _ := p.exited()
		return gone, nil
	})
	return err == nil
}

// poll asks done every so often until it says yes, fails, or ctx ends.
func poll(ctx context.Context, every time.Duration, done func() (bool, error)) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
