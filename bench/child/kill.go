package child

// Kill ends the program at once, as a power cut would, and waits until it is
// gone. A Stop after it does nothing.
func (p *Process) Kill() (err error) {
	p.stop.Do(func() {
		err = p.cmd.Process.Kill()
		<-p.done
	})
	return err
}
