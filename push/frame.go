package push

import (
	"bytes"
	"fmt"
	"strconv"
	"time"
)

// frame is one message in the bytes that go on the wire, made once and shared
// by everything that sends it.
type frame struct {
	bytes []byte
	body  int // bytes[:body] is all but the id and the empty line

	index  uint64 // of its record among the hub's records with deliveries
	slot   int    // where the record stands
	offset int64
	part   int  // place among the record's messages to one channel
	last   bool // nothing of the record follows for that channel
	latest string
}

// before orders frames as the hub delivers them.
func (f *frame) before(index uint64, part int) bool {
	return f.index < index || f.index == index && f.part < part
}

// appendMessage writes event and data, without the line that ends a message.
func appendMessage(b []byte, m Message) []byte {
	if m.Event != "" {
		b = append(b, "event: "...)
		b = append(b, m.Event...)
		b = append(b, '\n')
	}
	rest := m.Data
	for {
		i := bytes.IndexAny(rest, "\r\n")
		if i < 0 {
			break
		}
		b = appendData(b, rest[:i])
		if rest[i] == '\r' && i+1 < len(rest) && rest[i+1] == '\n' {
			i++
		}
		rest = rest[i+1:]
	}
	return appendData(b, rest)
}

func appendData(b, text []byte) []byte {
	b = append(b, "data: "...)
	b = append(b, text...)
	return append(b, '\n')
}

// appendID writes the id line and ends the message.
func (s *sealer) appendID(b []byte, l *layout, c *cursor) []byte {
	b = append(b, "id: "...)
	b = s.seal(b, l, c)
	return append(b, "\n\n"...)
}

// signal is a message of the hub itself, with the cursor c.
func (s *sealer) signal(name, reason string, l *layout, c *cursor) []byte {
	data := fmt.Appendf(nil, `{"reason":%q}`, reason)
	if reason == "" {
		data = []byte("{}")
	}
	return s.appendID(appendMessage(nil, Message{name, data}), l, c)
}

// heartbeat is a comment and an id without data: it shows no message to the
// client but moves its cursor, so that one on a quiet channel is still in the
// tail when it comes back.
func (s *sealer) heartbeat(l *layout, c *cursor) []byte {
	return s.appendID([]byte(": hb\n"), l, c)
}

// bareHeartbeat moves no cursor.
var bareHeartbeat = []byte(": hb\n\n")

// retry tells the client how long to wait before it comes back.
func retry(d time.Duration) []byte {
	b := strconv.AppendInt([]byte("retry: "), d.Milliseconds(), 10)
	return append(b, "\n\n"...)
}

// encode makes the frames of a record's deliveries, in their order. The cursor
// of a frame is the one after it, so encode needs where the hub stands. Equal
// messages to different channels share one frame.
func (w *window) encode(s *sealer, slot int, offset int64, deliveries []Delivery) []*frame {
	remaining := make(map[string]int, 1)
	for _, d := range deliveries {
		remaining[d.Channel]++
	}
	sent := make(map[string]int, len(remaining))
	frames := make([]*frame, len(deliveries))
	for i, d := range deliveries {
		f := &frame{index: w.index, slot: slot, offset: offset, part: sent[d.Channel], latest: d.Latest}
		sent[d.Channel]++
		f.last = sent[d.Channel] == remaining[d.Channel]
		if same := sharing(frames[:i], deliveries, f, d.Message); same != nil {
			frames[i] = same
			continue
		}
		f.bytes = appendMessage(make([]byte, 0, len(d.Message.Data)+256), d.Message)
		f.body = len(f.bytes)
		f.bytes = s.appendID(f.bytes, w.layout, w.after(f))
		frames[i] = f
	}
	return frames
}

func sharing(made []*frame, deliveries []Delivery, f *frame, m Message) *frame {
	for i, g := range made {
		o := deliveries[i].Message
		if g.part == f.part && g.last == f.last && g.latest == f.latest && o.Event == m.Event && bytes.Equal(o.Data, m.Data) {
			return g
		}
	}
	return nil
}

// after is the hub's cursor once f was sent.
func (w *window) after(f *frame) *cursor {
	c := w.cursor()
	c.index, c.part = f.index, f.part+1
	if f.last {
		c.index, c.part = f.index+1, 0
	}
	c.advance(f)
	return c
}
