package push

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
)

// shows takes a record into the window whose one message is the newest of name.
func (h *Hub) shows(channel, name string, slot int, offset int64) {
	d := []Delivery{{Channel: channel, Latest: name, Message: Message{"shown", fmt.Appendf(nil, "%s=%d/%d", name, slot, offset)}}}
	frames := h.window.encode(h.sealer, slot, offset, d)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.window.next[slot] = offset + 1
	h.metrics.forgotten.Add(float64(h.window.keep(frames, d, h.give)))
}

func (h *Hub) here() *cursor { return h.window.cursor() }

func requireTexts(t *testing.T, opening [][]byte, want ...string) {
	t.Helper()
	var got []string
	for _, b := range opening {
		_, text, _ := bytes.Cut(b, []byte("data: "))
		text, _, _ = bytes.Cut(text, []byte("\n"))
		got = append(got, string(text))
	}
	if !slices.Equal(got, want) {
		t.Errorf("came back to %q, want %q", got, want)
	}
}

func TestWhoComesBackGetsTheNewestOfEachNameInItsPlace(t *testing.T) {
	h := loaded(t, 0, 0)
	before := h.here()
	h.shows("x", "a", 1, 0)
	h.shows("x", "b", 1, 1)
	h.says("x", 0, 0)
	h.shows("x", "a", 1, 2)
	h.shows("y", "a", 1, 3)
	h.says("x", 0, 1)
	_, opening := h.joined(t, "x", before)
	requireTexts(t, opening, "b=1/1", "0/0", "a=1/2", "0/1")

	_, opening = h.joined(t, "x", h.here())
	requireTexts(t, opening)

	elsewhere := h.here() // of another hub, which had read less
	elsewhere.epoch, elsewhere.next = [8]byte{}, []int64{1, 2}
	_, opening = h.joined(t, "x", elsewhere)
	requireTexts(t, opening, "a=1/2", "0/1")
}

func TestWhoListensGetsEachNewest(t *testing.T) {
	h := loaded(t, 0)
	c, _ := h.joined(t, "x", h.here())
	for o := range int64(3) {
		h.shows("x", "a", 0, o)
	}
	batch, _, _ := c.take(nil)
	requireTexts(t, batch, "a=0/0", "a=0/1", "a=0/2")
}

func TestAFloodOfNewestLeavesTheTailAndItsOwnBounds(t *testing.T) {
	h := loaded(t, 0, 0)
	h.window.latest.limit, h.window.latest.limitBytes = 50, 1<<20
	before := h.here()
	h.says("x", 0, 0)
	for o := range int64(50_000) {
		h.shows(fmt.Sprintf("c%d", o%1000), "position", 1, o)
	}
	h.says("x", 0, 1)
	_, opening := h.joined(t, "x", before)
	requireTexts(t, opening, "0/0", "0/1")
	if n := len(h.window.tail); n != 2 {
		t.Errorf("%d records in the tail", n)
	}
	if n := len(h.window.channels); n != 51 {
		t.Errorf("%d channels for 50 kept names and a listener", n)
	}
	if l := &h.window.latest; l.n != 50 || l.bytes > l.limitBytes {
		t.Errorf("%d kept in %d bytes", l.n, l.bytes)
	}
}

func TestNewestAreBoundedInBytes(t *testing.T) {
	h := loaded(t, 0)
	h.window.latest.limitBytes = 20_000
	for o := range int64(1000) {
		h.shows("x", fmt.Sprint("name", o), 0, o)
	}
	l := &h.window.latest
	if l.bytes > 20_000 || l.n == 0 || l.n != len(h.window.channels["x"].newest) {
		t.Errorf("%d bytes in %d, %d of them in their channel", l.bytes, l.n, len(h.window.channels["x"].newest))
	}
	_, opening := h.joined(t, "x", &cursor{epoch: h.window.epoch, next: []int64{0}})
	if len(opening) != l.n {
		t.Errorf("%d of %d came", len(opening), l.n)
	}
}

// Whatever comes in whatever order, somebody who has been away holds in the end
// what somebody who stayed holds.
func TestNewestConverge(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		h := loaded(t, 0, 0)
		held := map[string]string{}
		note := func(batch [][]byte) {
			for _, b := range batch {
				_, text, _ := bytes.Cut(b, []byte("data: "))
				text, _, _ = bytes.Cut(text, []byte("\n"))
				name, value, _ := bytes.Cut(text, []byte("="))
				held[string(name)] = string(value)
			}
		}
		cur, want := h.here(), map[string]string{}
		for range rapid.IntRange(1, 8).Draw(rt, "rounds") {
			for range rapid.IntRange(0, 20).Draw(rt, "messages") {
				slot, name := rapid.IntRange(0, 1).Draw(rt, "slot"), rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "name")
				o := h.window.next[slot]
				h.shows("x", name, slot, o)
				want[name] = fmt.Sprintf("%d/%d", slot, o)
			}
			if rapid.Bool().Draw(rt, "from elsewhere") {
				cur.epoch = [8]byte{}
			}
			c, opening := h.joined(t, "x", cur)
			note(opening)
			cur = h.here()
			h.leave(c, "")
		}
		if len(held) != len(want) {
			rt.Fatalf("holds %v, want %v", held, want)
		}
		for name, v := range want {
			if held[name] != v {
				rt.Fatalf("holds %v, want %v", held, want)
			}
		}
	})
}

func TestATelemetryTopicDeliversNothingThatCouldBeMissed(t *testing.T) {
	h := loaded(t, 0)
	h.window.telemetry[0] = true
	r := &logReader{hub: h, window: h.window, ids: newIDSet(10), latestIDs: newIDSet(10)}
	durable := true
	h.cfg.Route = func(context.Context, *kgo.Record, *event.Envelope) ([]Delivery, error) {
		d := Delivery{Channel: "x", Message: Message{Data: []byte("m")}}
		if !durable {
			d.Latest = "m"
		}
		return []Delivery{d}, nil
	}
	rec := func(offset int64) *kgo.Record { return stranger("a", offset) }
	if got := r.deliveries(t.Context(), rec(0), 0); got != nil {
		t.Errorf("delivers %+v", got)
	}
	durable = false
	if got := r.deliveries(t.Context(), rec(1), 0); len(got) != 1 {
		t.Errorf("delivers %+v", got)
	}
	if _, err := New(nil, Config{Topics: []string{"a"}, LatestTopics: []string{"b"}, Route: h.cfg.Route, Key: [32]byte{1}}); err == nil {
		t.Error("a telemetry topic that is not read")
	}
}

// stranger is a record of no relay of ours: its place in the log is its id.
func stranger(topic string, offset int64) *kgo.Record {
	env := event.Envelope{ID: event.NewID(), Source: "/s", Type: "t", Subject: "k", Tenant: "x"}
	rec := &kgo.Record{Topic: topic, Offset: offset, Key: []byte("k")}
	env.Headers(func(name, value string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	})
	return rec
}

func TestTelemetryHasNoShareOfTheTail(t *testing.T) {
	cfg := Config{Tail: 100, Latest: 40}
	got := tailStarts([]int64{0, 0, 0, 990}, []int64{1000, 10, 1000, 1000}, []bool{false, false, true, true}, cfg)
	if want := []int64{950, 0, 980, 990}; !slices.Equal(got, want) {
		t.Errorf("reads from %v, want %v", got, want)
	}
}

func TestASlowClientIsSparedWhatIsOutOfDate(t *testing.T) {
	h := loaded(t, 0, 0)
	c, _ := h.joined(t, "x", h.here())
	c.limit = 8
	for o := range int64(200) {
		h.shows("x", fmt.Sprint("n", o%3), 1, o)
		if o%50 == 0 {
			h.says("x", 0, o)
		}
	}
	batch, _, ended := c.take(nil)
	if ended {
		t.Fatal("it was ended")
	}
	var events, newest []string
	for _, b := range batch {
		_, text, _ := bytes.Cut(b, []byte("data: "))
		text, _, _ = bytes.Cut(text, []byte("\n"))
		if name, value, state := bytes.Cut(text, []byte("=")); state {
			newest = append(newest, string(name), string(value))
		} else {
			events = append(events, string(text))
		}
	}
	if want := []string{"0/0", "0/50", "0/100", "0/150"}; !slices.Equal(events, want) {
		t.Errorf("events %q, want %q", events, want)
	}
	last := map[string]string{}
	for i := 0; i < len(newest); i += 2 {
		last[newest[i]] = newest[i+1]
	}
	if len(batch) > 8 || last["n0"] != "1/198" || last["n1"] != "1/199" || last["n2"] != "1/197" {
		t.Errorf("of %d messages the newest are %v", len(batch), last)
	}
	for o := range int64(9) { // what must not be left out ends it all the same
		h.says("x", 0, 200+o)
	}
	if _, _, ended := c.take(nil); !ended {
		t.Error("a client that does not read is still there")
	}
}
