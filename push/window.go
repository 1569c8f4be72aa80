package push

import (
	"crypto/rand"
	"slices"
	"sort"
)

// window is what the hub holds of the log: how far it has read, the last
// records' frames by channel, and who listens. A new one begins whenever the
// log is read afresh. All of it is guarded by the hub's mutex; the reader,
// which alone changes next and index, reads those two without.
type window struct {
	layout *layout
	epoch  [8]byte
	next   []int64 // per slot, the offset to be read next
	floor  []int64 // per slot, the lowest offset from which nothing is missing
	index  uint64  // of the next record with deliveries

	telemetry []bool // per slot, whether nothing can be missing from it

	tail     []*kept // by index, oldest first
	floorAt  uint64  // the lowest index from which nothing is missing
	bytes    int
	channels map[string]*channel
	latest   latest

	limit, limitBytes int
}

// kept is a record in the tail.
type kept struct {
	index  uint64
	slot   int
	offset int64
	bytes  int
	parts  []part
}

// part is how many of a record's messages went to a channel.
type part struct {
	channel *channel
	n       int
}

// channel is made when something is kept for it or somebody listens, and goes
// when neither holds any more.
type channel struct {
	name  string
	tail  []*frame // see trim about what lies before it
	gone  int      // frames before tail that the array still holds
	conns []*conn

	newest map[string]*newest // by name, nil until there is one
}

func newWindow(l *layout, from []int64, cfg Config) *window {
	w := &window{
		layout: l, next: slices.Clone(from), floor: slices.Clone(from), telemetry: l.latest(),
		channels: map[string]*channel{}, limit: cfg.Tail, limitBytes: cfg.TailBytes,
		latest: latest{limit: cfg.Latest, limitBytes: cfg.LatestBytes},
	}
	_, _ = rand.Read(w.epoch[:]) // never fails
	return w
}

// cursor is where the hub stands.
func (w *window) cursor() *cursor {
	return &cursor{epoch: w.epoch, index: w.index, next: slices.Clone(w.next)}
}

func (w *window) channel(name string) *channel {
	ch := w.channels[name]
	if ch == nil {
		ch = &channel{name: name}
		w.channels[name] = ch
	}
	return ch
}

func (w *window) release(ch *channel) {
	if len(ch.conns) == 0 && len(ch.tail) == 0 && len(ch.newest) == 0 {
		delete(w.channels, ch.name)
	}
}

// deliveryOverhead is about what a delivery holds in memory besides bytes of
// its own, so that TailBytes also bounds a record that goes to many channels.
const deliveryOverhead = 64

// keep takes in the frames of one record, each for the channel of the delivery
// in the same place, and hands each to give. It returns how many newest messages
// were forgotten for it.
func (w *window) keep(frames []*frame, deliveries []Delivery, give func(*channel, *frame)) (forgotten int) {
	k := &kept{index: w.index, slot: frames[0].slot, offset: frames[0].offset}
	var counted *frame
	for i, f := range frames {
		d := &deliveries[i] //nolint:gosec // as many as frames
		ch := w.channel(d.Channel)
		if d.Latest != "" {
			w.latest.put(ch, d.Latest, f)
			give(ch, f)
			continue
		}
		ch.tail = append(ch.tail, f)
		k.parts = append(k.parts, part{ch, 1})
		k.bytes += deliveryOverhead
		if f != counted {
			k.bytes += cap(f.bytes)
			counted = f
		}
		give(ch, f)
	}
	w.index++
	if len(k.parts) > 0 {
		w.bytes += k.bytes
		w.tail = append(w.tail, k)
		w.evict()
	}
	return w.latest.evict(w.release)
}

// evict drops the oldest records until the tail is within its bounds.
func (w *window) evict() {
	n := 0
	for ; len(w.tail)-n > w.limit || (w.bytes > w.limitBytes && n < len(w.tail)); n++ {
		k := w.tail[n]
		for _, p := range k.parts {
			p.channel.trim(p.n)
			w.release(p.channel)
		}
		w.floor[k.slot] = max(w.floor[k.slot], k.offset+1)
		w.floorAt = k.index + 1
		w.bytes -= k.bytes
		w.tail[n] = nil
	}
	w.tail = w.tail[n:] // append moves what is left to a new array in time
}

// trim drops the n oldest frames. Replays share the array, so frames are not
// cleared in place; instead it is left behind once most of it is gone.
func (ch *channel) trim(n int) {
	ch.tail = ch.tail[n:]
	ch.gone += n
	if len(ch.tail) == 0 {
		ch.tail, ch.gone = nil, 0
	} else if ch.gone > len(ch.tail) {
		ch.tail, ch.gone = slices.Clone(ch.tail), 0
	}
}

// outcome of a resume, as the metric names it.
type outcome string

const (
	outcomeTail    outcome = "tail"    // all of it was in the tail
	outcomeExpired outcome = "expired" // the tail no longer reaches back that far
	outcomeInvalid outcome = "invalid" // not a cursor of this log
)

// since returns what of ch comes after c. A cursor of another process, or of
// another epoch of this one, is not a place in this hub's order: the frames
// then need cursors of their own, which personal says.
func (w *window) since(ch *channel, c *cursor) (frames []*frame, personal bool, _ outcome) {
	if c.epoch == w.epoch {
		if c.index < w.floorAt || c.index > w.index {
			return nil, false, outcomeExpired
		}
		i := sort.Search(len(ch.tail), func(i int) bool { return !ch.tail[i].before(c.index, c.part) })
		after := ch.tail[i:len(ch.tail):len(ch.tail)]
		return ch.withNewest(after, func(f *frame) bool { return f.before(c.index, c.part) }), false, outcomeTail
	}
	for slot, next := range c.next {
		if w.telemetry[slot] {
			continue
		}
		if next < w.floor[slot] || next > w.next[slot]+int64(w.limit) {
			return nil, false, outcomeExpired
		}
	}
	for _, f := range ch.tail {
		if !c.seen(f) {
			frames = append(frames, f)
		}
	}
	return ch.withNewest(frames, c.seen), true, outcomeTail
}

// covers tells whether the hub has read everything before c.
func (w *window) covers(c *cursor) bool {
	for slot, next := range c.next {
		if next > w.next[slot] || next == w.next[slot] && c.read(slot) > 0 {
			return false
		}
	}
	return true
}
