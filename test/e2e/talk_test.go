package e2e

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"github.com/waybillhq/waybill/push"
	"github.com/waybillhq/waybill/test/proc"
)

// talk is follow by a WebSocket, with the key where a browser can put it.
func talk(t *testing.T, w *proc.Waybill, key, path, lastID string) *stream {
	t.Helper()
	protocols := []string{push.Subprotocol}
	if key != "" {
		protocols = append(protocols, "bearer."+key)
	}
	ws, answer, err := websocket.Dial(t.Context(), w.HTTP+path+query(path)+"last_event_id="+lastID, &websocket.DialOptions{Subprotocols: protocols})
	if err != nil {
		t.Fatal(err)
	}
	if got := answer.Header.Get("Sec-Websocket-Protocol"); got != push.Subprotocol {
		t.Fatalf("the server speaks %q", got)
	}
	ws.SetReadLimit(1 << 20)
	s := &stream{t: t, messages: make(chan message, 10_000), last: lastID, close: func() { _ = ws.CloseNow() }}
	t.Cleanup(s.close)
	go s.listen(ws)
	if lastID != "" {
		return s
	}
	if m := s.next(); m.Event != "ready" {
		t.Fatalf("WebSocket %s opens with %+v", path, m)
	}
	return s
}

func (s *stream) listen(ws *websocket.Conn) {
	defer close(s.messages)
	for {
		_, b, err := ws.Read(context.WithoutCancel(s.t.Context()))
		if err != nil {
			return
		}
		var told struct {
			ID, Event string
			Data      json.RawMessage
		}
		m := message{}
		if json.Unmarshal(b, &told) != nil || len(told.Data) == 0 || json.Unmarshal(told.Data, &m.Data) != nil {
			continue
		}
		m.ID, m.Event, m.Raw = told.ID, told.Event, string(told.Data)
		s.messages <- m
	}
}

// refused asks for a WebSocket that is not given, and returns why not.
func refused(t *testing.T, url string, protocols ...string) int {
	t.Helper()
	ws, answer, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{Subprotocols: protocols})
	if err == nil {
		_ = ws.CloseNow()
		t.Fatalf("%s was opened with %q", url, protocols)
	}
	if answer == nil {
		t.Fatal(err)
	}
	return answer.StatusCode
}

// ways are the two by which a client follows a channel.
var ways = map[string]func(t *testing.T, w *proc.Waybill, key, path, lastID string) *stream{
	"server-sent events": follow, "WebSocket": talk,
}

// over waits for the end of the stream.
func (s *stream) over() {
	s.t.Helper()
	for open := true; open; {
		_, open = s.nextUnlessOver()
	}
}

// status of a request under key.
func status(t *testing.T, w *proc.Waybill, key, method, path string) int {
	t.Helper()
	code, _, err := w.Request(t.Context(), method, path, "", "Authorization", "Bearer "+key)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// query begins one, or goes on.
func query(path string) string {
	if strings.Contains(path, "?") {
		return "&"
	}
	return "?"
}
