package message_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/waybillhq/waybill/outbox/message"
)

func sample() []byte {
	b := message.Begin(nil)
	b = message.Append(b, bytes.Repeat([]byte{7}, 16))
	for _, s := range []string{"orders.events", "key", "/orders", "type"} {
		b = message.Append(b, s)
	}
	b = message.AppendTime(b, time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC))
	b = message.Append(b, "tenant")
	b = message.AppendInt64(b, -3)
	for range 3 {
		b = message.Append(b, "")
	}
	b = message.AppendInt64(b, 9)
	return message.Append(b, []byte("body"))
}

func TestColumnsComeBack(t *testing.T) {
	var c [message.Columns][]byte
	if err := message.Split(sample(), &c); err != nil {
		t.Fatal(err)
	}
	if string(c[message.Topic]) != "orders.events" || string(c[message.Body]) != "body" || len(c[message.TraceParent]) != 0 {
		t.Errorf("columns %q", c)
	}
}

func TestWhatIsCutShortIsRefused(t *testing.T) {
	whole := sample()
	var c [message.Columns][]byte
	for n := range whole {
		if message.Split(whole[:n], &c) == nil {
			t.Errorf("the first %d of %d bytes pass", n, len(whole))
		}
	}
	if message.Split(append(whole, 0), &c) == nil {
		t.Error("a byte too many passes")
	}
}

func FuzzSplit(f *testing.F) {
	f.Add(sample())
	f.Add([]byte{1, 255, 255, 255, 255})
	f.Fuzz(func(t *testing.T, content []byte) {
		var c [message.Columns][]byte
		if message.Split(content, &c) != nil {
			return
		}
		again := message.Begin(nil)
		for _, v := range c {
			again = message.Append(again, v)
		}
		if !bytes.Equal(again, content) {
			t.Errorf("%x came back as %x", content, again)
		}
	})
}
