package cdc

import "sync"

// tracker remembers, while a table is being read, which keys the stream has
// changed lately and by which transaction. A row that was read before such a
// change could be seen must not be published after it.
//
// It holds what the last visibility it was told of did not see, which is what
// changed within about one chunk.
type tracker struct {
	mu      sync.Mutex
	on      bool
	touched map[string]uint32 // xid of the latest change of a key
	emptied bool              // the table was truncated, by:
	by      uint32
}

func (t *tracker) start() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on, t.touched, t.emptied = true, map[string]uint32{}, false
}

func (t *tracker) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.on, t.touched = false, nil
}

// touch notes a change of key. The latest is enough: who changes a key after
// another had to wait until the other's change could be seen.
func (t *tracker) touch(key []byte, xid uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.on {
		t.touched[string(key)] = xid
	}
}

func (t *tracker) truncate(xid uint32) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.emptied, t.by = true, xid
}

// superseded tells whether the stream has brought a change of key that v does
// not see.
func (t *tracker) superseded(key []byte, v visibility) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.emptied && !v.sees(t.by) {
		return true
	}
	xid, ok := t.touched[string(key)]
	return ok && !v.sees(xid)
}

// forget drops what v sees: so does every later one.
func (t *tracker) forget(v visibility) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.emptied && v.sees(t.by) {
		t.emptied = false
	}
	for key, xid := range t.touched {
		if v.sees(xid) {
			delete(t.touched, key)
		}
	}
}
