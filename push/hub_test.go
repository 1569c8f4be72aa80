package push

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
)

// loaded is a hub whose log ends at the given offsets.
func loaded(t *testing.T, next ...int64) *Hub {
	t.Helper()
	route := func(context.Context, *kgo.Record, *event.Envelope) ([]Delivery, error) { return nil, nil }
	h, err := New(nil, Config{Topics: []string{"a"}, Route: route, Key: [32]byte{1}, Tail: 100})
	if err != nil {
		t.Fatal(err)
	}
	h.window = newWindow(testLayout(t, len(next)), next, h.cfg)
	return h
}

// says takes a record with one message into the window.
func (h *Hub) says(channel string, slot int, offset int64) {
	d := []Delivery{{Channel: channel, Message: Message{"said", fmt.Appendf(nil, "%d/%d", slot, offset)}}}
	frames := h.window.encode(h.sealer, slot, offset, d)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.window.next[slot] = offset + 1
	h.window.keep(frames, d, h.give)
}

func (h *Hub) joined(t *testing.T, channel string, cur *cursor) (*conn, [][]byte) {
	t.Helper()
	c, opening, refused := h.join(channel, "", string(h.sealer.seal(nil, h.window.layout, cur)), Credential{})
	if refused != nil {
		t.Fatal(refused.detail)
	}
	return c, opening
}

func (h *Hub) beatAll() {
	for range spokes {
		h.beat(time.Now())
	}
}

func TestClientAheadOfItsHubGetsNoRepeat(t *testing.T) {
	h := loaded(t, 10, 10)
	c, opening := h.joined(t, "x", &cursor{next: []int64{12, 10}})
	if len(opening) != 0 {
		t.Fatalf("opening %q", opening)
	}
	for _, o := range []int64{10, 11} {
		h.says("x", 0, o)
	}
	h.says("x", 1, 10)
	h.says("x", 0, 12)
	batch, _, _ := c.take(nil)
	if len(batch) != 2 || !bytes.Contains(batch[0], []byte("1/10")) || !bytes.Contains(batch[1], []byte("0/12")) {
		t.Fatalf("got %q", batch)
	}
}

func TestClientAheadOfALogThatLostWhatItSawIsReset(t *testing.T) {
	h := loaded(t, 10, 10)
	c, _ := h.joined(t, "x", &cursor{next: []int64{12, 10}})
	h.beatAll()
	if batch, _, _ := c.take(nil); len(batch) != 1 || !bytes.Equal(batch[0], bareHeartbeat) {
		t.Fatalf("after one heartbeat %q, want one that moves no cursor", batch)
	}
	h.beatAll()
	if batch, _, _ := c.take(nil); len(batch) != 1 || !bytes.Contains(batch[0], []byte("event: reset")) {
		t.Fatalf("after two heartbeats %q, want reset", batch)
	}

	_, opening := h.joined(t, "x", &cursor{next: []int64{1000, 10}})
	if len(opening) != 1 || !bytes.Contains(opening[0], []byte("event: reset")) {
		t.Fatalf("far ahead: %q, want reset", opening)
	}
}

func TestChannelsAreForgottenWithTheirMessages(t *testing.T) {
	h := loaded(t, 0)
	for i := range int64(1000) {
		h.says(fmt.Sprintf("c%d", i), 0, i)
	}
	if n := len(h.window.channels); n != 100 {
		t.Errorf("%d channels for 100 records in the tail", n)
	}
	c, _ := h.joined(t, "listening", &cursor{next: []int64{1000}})
	h.leave(c, "")
	if n := len(h.window.channels); n != 100 || h.total != 0 {
		t.Errorf("%d channels and %d connections after the only one left", n, h.total)
	}
}

func TestTailIsBoundedInBytes(t *testing.T) {
	h := loaded(t, 0)
	h.window.limitBytes = 10_000
	for i := range int64(90) {
		h.says("x", 0, i)
	}
	if h.window.bytes > 10_000 || len(h.window.tail) == 0 {
		t.Errorf("%d bytes in %d records", h.window.bytes, len(h.window.tail))
	}
}

func TestMessageToManyChannelsIsEncodedOnce(t *testing.T) {
	h := loaded(t, 0)
	m := Message{"said", []byte("x")}
	d := []Delivery{{Channel: "a", Message: m}, {Channel: "b", Message: m}, {Channel: "b", Message: Message{"said", []byte("y")}}, {Channel: "c", Message: m}}
	f := h.window.encode(h.sealer, 0, 0, d)
	if f[0] != f[3] || f[0] == f[1] || !f[2].last || f[1].last {
		t.Errorf("frames %+v", f)
	}
}

func TestFramingSurvivesAnyData(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		lines := rapid.SliceOfN(rapid.StringMatching(`[^\r\n]*`), 1, 5).Draw(t, "lines")
		var data, want []byte
		for i, l := range lines {
			if i > 0 {
				data = append(data, rapid.SampledFrom([]string{"\n", "\r", "\r\n"}).Draw(t, "break")...)
			}
			data = append(data, l...)
			want = append(want, "data: "+l+"\n"...)
		}
		if bytes.Contains(data, []byte("\r\n")) {
			return // an empty line between \r and \n cannot be told from \r\n
		}
		if got := appendMessage(nil, Message{Data: data}); !bytes.Equal(got, want) {
			t.Fatalf("%q became %q", data, got)
		}
	})
}

func TestIDSetForgetsTheOldest(t *testing.T) {
	s := newIDSet(3)
	id := func(b byte) uuid.UUID { return uuid.UUID{b} }
	var got []bool
	for _, b := range []byte{1, 2, 3, 1, 4, 1, 2} {
		got = append(got, s.add(0, id(b)))
	}
	if want := []bool{true, true, true, false, true, true, true}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !s.add(1, id(4)) || len(s.set) != 3 {
		t.Errorf("the same id on another partition is another event; %d kept", len(s.set))
	}
}

func TestJSONIsOneLine(t *testing.T) {
	env := event.Envelope{ID: event.NewID(), Type: "t", Time: time.Unix(0, 0).UTC(), Subject: "s", Sequence: 3, CorrelationID: "c"}
	b, err := JSON(&env, map[string]string{"a": "x\ny"})
	want := fmt.Sprintf(`{"id":%q,"type":"t","time":"1970-01-01T00:00:00Z","subject":"s","sequence":3,"correlation_id":"c","data":{"a":"x\ny"}}`, env.ID)
	if err != nil || string(b) != want {
		t.Errorf("%s, %v, want %s", b, err, want)
	}
}
