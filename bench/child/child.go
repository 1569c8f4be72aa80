// Package child runs another program for a measurement and reads what it
// costs.
//
// It promises that Stop returns, that the program is then gone, and that what
// it wrote last is told with its failure. What it cost is read from /proc:
// where there is none, that is unknown.
package child

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

// patience is how long an orderly end may take; what has not ended then is
// killed. `waybill up` gives each of its parts 20 s.
const patience = time.Minute

// Process is a program that was started.
type Process struct {
	name string
	cmd  *exec.Cmd
	log  tail
	done chan struct{}
	err  error // once done is closed
	stop sync.Once
}

// Start starts program, called name in errors, with our environment and env,
// NAME=VALUE, over it. It is ended by Stop and not by ctx: a program that is
// killed leaves behind what it started itself.
func Start(ctx context.Context, name, program string, args, env []string) (*Process, error) {
	p := &Process{name: name, done: make(chan struct{})}
	p.cmd = exec.CommandContext(context.WithoutCancel(ctx), program, args...) //nolint:gosec // the measurement's own programs
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.log, &p.log
	// A group of its own: Ctrl-C would reach it too, and with ours be the second
	// signal, at which it ends without stopping what it started.
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// Done is closed when the program has ended, wanted or not.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended is the error to report when Done is closed unasked.
func (p *Process) Ended() error {
	<-p.done
	if p.err == nil {
		return fmt.Errorf("%s ended by itself%s", p.name, p.said())
	}
	return fmt.Errorf("%s ended: %w%s", p.name, p.err, p.said())
}

// Stop asks the program to stop and waits for its end. Only the first call
// does.
func (p *Process) Stop() (err error) {
	p.stop.Do(func() {
		_ = p.cmd.Process.Signal(os.Interrupt) // it may be gone already
		late := time.NewTimer(patience)
		defer late.Stop()
		select {
		case <-p.done:
			if err = p.err; err != nil {
				err = fmt.Errorf("stop %s: %w%s", p.name, err, p.said())
			}
		case <-late.C:
			err = errors.Join(fmt.Errorf("stop %s: killed, for it had not ended after %s%s", p.name, patience, p.said()),
				p.cmd.Process.Kill())
			<-p.done
		}
	})
	return err
}

// Said is the end of what the program wrote.
func (p *Process) Said() string { return p.log.String() }

func (p *Process) said() string {
	if s := p.Said(); s != "" {
		return "\n" + s
	}
	return ""
}
