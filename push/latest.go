package push

import (
	"cmp"
	"slices"
)

// latest holds the newest message of each name of each channel, the ones that
// changed longest ago last. What is beyond its bounds is forgotten: a client
// that comes back is not told so, since the next message of that name says all
// that the forgotten one did.
type latest struct {
	first, last *newest // most and least recently changed
	n, bytes    int

	limit, limitBytes int
}

// newest is the newest message of a name.
type newest struct {
	channel      *channel
	name         string
	frame        *frame
	before, next *newest
}

// newestOverhead is about what one holds in memory besides its bytes and name.
const newestOverhead = 256

func (n *newest) bytes() int { return newestOverhead + len(n.name) + cap(n.frame.bytes) }

// put makes f the newest of name in ch.
func (l *latest) put(ch *channel, name string, f *frame) {
	n := ch.newest[name]
	if n == nil {
		n = &newest{channel: ch, name: name}
		if ch.newest == nil {
			ch.newest = map[string]*newest{}
		}
		ch.newest[name] = n
	} else {
		l.unlink(n)
	}
	n.frame = f
	l.link(n)
}

// evict drops the least recently changed until the bounds hold, and hands each
// channel that lost one to release.
func (l *latest) evict(release func(*channel)) (forgotten int) {
	for l.n > l.limit || l.bytes > l.limitBytes && l.n > 0 {
		n := l.last
		l.unlink(n)
		delete(n.channel.newest, n.name)
		release(n.channel)
		forgotten++
	}
	return forgotten
}

func (l *latest) link(n *newest) {
	n.before, n.next = nil, l.first
	if l.first != nil {
		l.first.before = n
	} else {
		l.last = n
	}
	l.first = n
	l.n++
	l.bytes += n.bytes()
}

func (l *latest) unlink(n *newest) {
	if n.before != nil {
		n.before.next = n.next
	} else {
		l.first = n.next
	}
	if n.next != nil {
		n.next.before = n.before
	} else {
		l.last = n.before
	}
	n.before, n.next = nil, nil
	l.n--
	l.bytes -= n.bytes()
}

// withNewest is frames and the channel's newest messages that are not seen yet,
// in the order the hub delivered them. frames is shared and not changed.
func (ch *channel) withNewest(frames []*frame, seen func(*frame) bool) []*frame {
	var more []*frame
	for _, n := range ch.newest {
		if !seen(n.frame) {
			more = append(more, n.frame)
		}
	}
	if len(more) == 0 {
		return frames
	}
	more = append(more, frames...)
	slices.SortFunc(more, func(a, b *frame) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.part, b.part))
	})
	return more
}
