package archive

import "io"

// OnDisk puts wrap between a Write and its disk.
func (o Options) OnDisk(wrap func(io.Writer) io.Writer) Options {
	o.wrap = wrap
	return o
}
