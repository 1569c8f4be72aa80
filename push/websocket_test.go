package push_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/waybillhq/waybill/push"
)

// talk is a WebSocket client.
type talk struct {
	t  *testing.T
	ws *websocket.Conn
}

func (s *site) talk(t *testing.T, channel, cursor string) *talk {
	t.Helper()
	ws, res, err := websocket.Dial(t.Context(), s.url+"?channel="+channel+"&last_event_id="+cursor,
		&websocket.DialOptions{Subprotocols: []string{push.Subprotocol, "bearer.secret"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	if got := res.Header.Get("Sec-Websocket-Protocol"); got != push.Subprotocol {
		t.Fatalf("the server speaks %q", got)
	}
	return &talk{t, ws}
}

// next is the next message with an event.
func (c *talk) next() message {
	c.t.Helper()
	for {
		m, err := c.read()
		if err != nil {
			c.t.Fatal(err)
		}
		if m.event != "" {
			return m
		}
	}
}

func (c *talk) read() (m message, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	kind, b, err := c.ws.Read(ctx)
	if err != nil {
		return m, err
	}
	var o struct {
		Event, ID string
		Data      json.RawMessage
		Retry     int
	}
	if err := json.Unmarshal(b, &o); err != nil || kind != websocket.MessageText {
		c.t.Fatalf("%v in %s", err, b)
	}
	return message{event: o.Event, id: o.ID, data: string(o.Data), retry: o.Retry}, nil
}

func (c *talk) want(key string, from, to int) (cursor string) {
	c.t.Helper()
	for n := from; n <= to; n++ {
		m := c.next()
		if d := m.thing(c.t); d.Key != key || d.N != n {
			c.t.Fatalf("got %s %d, want %s %d", d.Key, d.N, key, n)
		}
		cursor = m.id
	}
	return cursor
}

// A client goes on by the other way where it left off.
func TestAWebSocketResumesAStreamAndIsResumedByOne(t *testing.T) {
	w := newWorld(t, 2)
	s := w.site(t, nil)
	c := s.talk(t, "a", "")
	if m := c.next(); m.event != push.EventReady || m.id == "" {
		t.Fatalf("opened with %+v", m)
	}
	other := s.talk(t, "b", "")
	other.next()
	w.say(t, "a", "k", 1)
	w.say(t, "a", "k", 2)
	cursor := c.want("k", 1, 2)
	_ = c.ws.CloseNow()
	w.say(t, "a", "k", 3)
	sse := s.open(t, "a", cursor)
	cursor = sse.want("k", 3, 3)
	sse.close()
	w.say(t, "a", "k", 4)
	back := s.talk(t, "a", cursor)
	back.want("k", 4, 4)
	w.say(t, "b", "other", 1)
	other.want("other", 1, 1) // and nothing of a came before it
	if m := s.talk(t, "a", "no-cursor-of-ours").next(); m.event != push.EventReset {
		t.Errorf("a made-up cursor: %+v", m)
	}
}

// The end of the hub is told, with how long to wait.
func TestAWebSocketIsToldToComeBack(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, nil)
	c := s.talk(t, "a", "")
	c.next()
	go s.stop()
	var retry int
	for {
		m, err := c.read()
		if err != nil {
			if websocket.CloseStatus(err) != websocket.StatusGoingAway {
				t.Errorf("ended with %v", err)
			}
			break
		}
		retry = max(retry, m.retry)
	}
	s.stop()
	if retry == 0 {
		t.Error("it was not told how long to wait")
	}
}

func TestAPageOfAnotherOriginOpensNoWebSocket(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, nil)
	_, res, err := websocket.Dial(t.Context(), s.url+"?channel=a", &websocket.DialOptions{HTTPHeader: http.Header{"Origin": {"https://elsewhere.example"}}})
	if err == nil || res == nil || res.StatusCode != http.StatusForbidden {
		t.Fatalf("%v, %+v", err, res)
	}
}

func TestWhoTalksOnAWebSocketIsLetGo(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, nil)
	c := s.talk(t, "a", "")
	c.next()
	if err := c.ws.Write(t.Context(), websocket.MessageText, []byte(`{"subscribe":"b"}`)); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := c.read(); err != nil {
			if websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
				t.Errorf("ended with %v", err)
			}
			return
		}
	}
}

// One that reads nothing is let go, although its time to write would be long.
func TestAWebSocketThatDoesNotReadIsEvicted(t *testing.T) {
	w := newWorld(t, 1)
	reg := prometheus.NewRegistry()
	s := w.site(t, func(c *push.Config) { c.Registerer, c.Buffer, c.WriteTimeout = reg, 16, time.Hour })
	s.talk(t, "a", "")
	c, _ := s.fresh(t, "a")
	for n := 1; metric(t, reg, "waybill_push_evictions_total") == 0; n++ {
		if n > 2000 {
			t.Fatal("it is kept")
		}
		w.publish(t, w.record("a", thing{Key: "k", N: n, Pad: strings.Repeat("x", 60_000)}))
		c.want("k", n, n)
	}
	c.close()
	s.stop() // returns: nothing waits for it any more
}

// A client that says something, and then neither goodbye nor anything else, does
// not hold the end up longer than any other: the handshake's own patience, five
// seconds, is not waited for. A machine that is slow has more than one try.
func TestADeafWebSocketDoesNotHoldUpTheEnd(t *testing.T) {
	for range 4 {
		w := newWorld(t, 1)
		s := w.site(t, nil)
		c, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.WriteString(c, "GET /?channel=a HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
			"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		if err != nil {
			t.Fatal(err)
		}
		rd := bufio.NewReader(c)
		for line := ""; !strings.Contains(line, push.EventReady); {
			if line, err = rd.ReadString('}'); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := c.Write([]byte{0x81, 0x82, 0, 0, 0, 0, 'h', 'i'}); err != nil { // a masked text frame
			t.Fatal(err)
		}
		closing := make([]byte, 2) // the frame that lets it go
		for !bytes.Equal(closing[:1], []byte{0x88}) {
			if _, err := io.ReadFull(rd, closing[:1]); err != nil {
				t.Fatal(err)
			}
		}
		begun := time.Now()
		s.stop()
		_ = c.Close()
		if time.Since(begun) < 4*time.Second {
			return
		}
	}
	t.Error("it is waited for")
}
