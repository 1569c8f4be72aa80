package proc

import (
	"io"
	"os/exec"
	"strconv"
	"syscall"
)

// lifeline asks process pid to stop when this process is gone before cut was
// called, however it went.
func lifeline(pid int) (cut func(), err error) {
	return guard(`read -r word; [ "$word" = cut ] || kill -INT "$1"`, strconv.Itoa(pid), "cut\n")
}

// guard has a shell do work on argument when this process is gone: the kernel
// then closes the other end of its input. end gives it last to read instead
// and waits for it.
func guard(work, argument, last string) (end func(), err error) {
	cmd := exec.Command("/bin/sh", "-c", work, "guard", argument)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C must not end it first
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return func() {
		_, _ = io.WriteString(in, last)
		_ = in.Close()
		_ = cmd.Wait()
	}, nil
}
