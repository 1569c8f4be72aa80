package archive

import (
	"bytes"
	"container/heap"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/uuid"
)

// merge reads files side by side, by ascending id. A file is opened when its
// first event may be the next one.
type merge struct {
	pending []File // by first event
	open    cursors
	last    Event
}

// cursor is an open file and its next event.
type cursor struct {
	*reader
	head Event
}

type cursors []cursor

func (c cursors) Len() int           { return len(c) }
func (c cursors) Less(i, j int) bool { return before(c[i].head.ID, c[j].head.ID) }
func (c cursors) Swap(i, j int)      { c[i], c[j] = c[j], c[i] }
func (c *cursors) Push(x any)        { *c = append(*c, x.(cursor)) }
func (c *cursors) Pop() any {
	last := len(*c) - 1
	x := (*c)[last]
	*c = (*c)[:last]
	return x
}

func before(a, b uuid.UUID) bool { return slices.Compare(a[:], b[:]) < 0 }

// next is the next event, ok false at the end of all files.
func (m *merge) next() (e Event, ok bool, err error) {
	for {
		if err := m.openDue(); err != nil || len(m.open) == 0 {
			return Event{}, false, err
		}
		e := m.open[0].head
		if err := m.advance(); err != nil {
			return Event{}, false, err
		}
		if e.ID != m.last.ID || m.last.ID == uuid.Nil {
			m.last = e
			return e, true, nil
		}
		if !Same(&e, &m.last) {
			return Event{}, false, fmt.Errorf("event %s is in two files of the archive, and differs: move the wrong one away", e.ID)
		}
	}
}

// Same tells whether two copies tell of one event. Where it was published may
// differ: a relay may have published it again in between.
func Same(a, b *Event) bool {
	return a.Envelope == b.Envelope && a.Topic == b.Topic && a.Fingerprint == b.Fingerprint &&
		a.XID == b.XID && bytes.Equal(a.Body, b.Body)
}

func (m *merge) openDue() error {
	for len(m.pending) > 0 && (len(m.open) == 0 || !before(m.open[0].head.ID, m.pending[0].First)) {
		r, err := open(m.pending[0].Path)
		if err != nil {
			return err
		}
		m.pending = m.pending[1:]
		m.open = append(m.open, cursor{reader: r}) // from here on closed with the others
		head, err := r.next()
		if err != nil {
			return err
		}
		m.open[len(m.open)-1].head = head
		heap.Fix(&m.open, len(m.open)-1)
	}
	return nil
}

// advance moves the file of the lowest event on, or closes it at its end.
func (m *merge) advance() error {
	r := m.open[0].reader
	head, err := r.next()
	if errors.Is(err, io.EOF) {
		heap.Pop(&m.open)
		return r.close()
	}
	if err != nil {
		return err
	}
	m.open[0].head = head
	heap.Fix(&m.open, 0)
	return nil
}

func (m *merge) close() {
	for _, c := range m.open {
		_ = c.close() // only read; what was wrong has been told
	}
}
