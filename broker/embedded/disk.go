package embedded

import "sync"

const (
	reserve    = 64 << 20 // left free for offsets, topics and what others write
	checkEvery = 8 << 20  // bytes taken between two looks at the disk
)

// disk keeps the log from filling its disk. The broker survives a failed
// write badly: it acknowledges offsets it could not write and may end up with
// an empty segment. So producers are told to wait before it comes to that.
type disk struct {
	free func() (int64, error) // nil: not known on this system

	mu   sync.Mutex
	left int64 // bytes that may be taken until the next look
}

// admits says whether n more bytes may be written.
func (d *disk) admits(n int) bool {
	if d.free == nil {
		return true
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.left -= int64(n); d.left > 0 {
		return true
	}
	free, err := d.free()
	if err != nil {
		d.left = checkEvery // not a reason to refuse
		return true
	}
	d.left = min(free-reserve-int64(n), checkEvery)
	return d.left > 0
}
