package push

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// Subprotocol is what a WebSocket client asks for, among others that may carry
// its credential.
const Subprotocol = "waybill.v1"

func wantsWebSocket(r *http.Request) bool {
	return strings.EqualFold(r.Header.Get("Upgrade"), "websocket")
}

// serveWebSocket is [Hub.Serve] for a client that asks to become a WebSocket, once
// it was let in: the cursors are the same, so that it may come back by the other way.
// Each text message is a JSON object: event, data and id of one message; id
// alone for a heartbeat; retry in milliseconds, how long to wait before coming
// back. Data that is no JSON is a string.
//
// The client sends nothing: one that does is let go. A page of another origin is
// refused with 403.
func (h *Hub) serveWebSocket(w http.ResponseWriter, r *http.Request, c *conn, opening [][]byte) {
	taken := &taken{ResponseWriter: w}
	ws, err := websocket.Accept(taken, r, &websocket.AcceptOptions{Subprotocols: []string{Subprotocol}})
	if err != nil {
		h.log.DebugContext(r.Context(), "a WebSocket was not opened", "error", err) // the client has its answer
		return
	}
	c.onRequest()
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.Context()))
	defer cancel()
	t := &talk{conn: c, ws: ws, net: taken.conn, hub: h}
	go t.listen(ctx, cancel)
	t.run(ctx, cancel, opening)
}

// talk writes one WebSocket.
type talk struct {
	conn *conn
	ws   *websocket.Conn
	net  net.Conn // under ws
	hub  *Hub
}

// taken keeps hold of the connection that its request gives up: a WebSocket that
// waits for its client to say goodbye can be ended by nothing else.
type taken struct {
	http.ResponseWriter
	conn net.Conn
}

func (t *taken) Hijack() (_ net.Conn, rw *bufio.ReadWriter, err error) {
	t.conn, rw, err = http.NewResponseController(t.ResponseWriter).Hijack()
	return t.conn, rw, err
}

// listen answers pings and notices that the client goes, or says something.
func (t *talk) listen(ctx context.Context, cancel context.CancelFunc) {
	defer cancel()
	if _, _, err := t.ws.Reader(ctx); err == nil {
		_ = t.ws.Close(websocket.StatusPolicyViolation, "the server alone speaks here")
	}
}

func (t *talk) run(ctx context.Context, cancel context.CancelFunc, opening [][]byte) {
	defer func() { _ = t.net.Close(); _ = t.ws.CloseNow() }() // which alone waits for a goodbye that was asked for
	stuck := time.AfterFunc(time.Hour, func() { cancel(); _ = t.net.Close() })
	stuck.Stop()
	defer stuck.Stop()
	t.conn.arm(func(at time.Time) error { stuck.Reset(time.Until(at)); return nil })
	if !t.write(ctx, append([][]byte{retry(t.hub.cfg.Retry)}, opening...)) {
		return
	}
	var spare [][]byte
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.conn.wake:
		}
		batch, end, ended := t.conn.take(spare)
		if !t.write(ctx, batch) {
			return
		}
		if ended {
			if end != nil && t.write(ctx, [][]byte{end}) {
				_ = t.ws.Close(websocket.StatusGoingAway, "come back")
			}
			return
		}
		spare = emptied(batch)
	}
}

func (t *talk) write(ctx context.Context, messages [][]byte) bool {
	for _, m := range messages {
		if !t.send(ctx, m) {
			return false
		}
	}
	t.hub.metrics.delivered.Add(float64(len(messages)))
	return true
}

func (t *talk) send(ctx context.Context, m []byte) bool {
	ctx, cancel := context.WithTimeout(ctx, t.hub.cfg.WriteTimeout)
	defer cancel()
	return t.ws.Write(ctx, websocket.MessageText, object(m)) == nil // else the client is gone or stuck
}

// told is a message as an object.
type told struct {
	Event string          `json:"event,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
	ID    string          `json:"id,omitempty"`
	Retry json.RawMessage `json:"retry,omitempty"`
}

// object is what an event stream's message says, in JSON.
func object(message []byte) []byte {
	var o told
	var data [][]byte
	for l := range bytes.Lines(message) {
		name, value, _ := bytes.Cut(bytes.TrimSuffix(l, []byte("\n")), []byte(": "))
		switch string(name) {
		case "event":
			o.Event = string(value)
		case "data":
			data = append(data, value)
		case "id":
			o.ID = string(value)
		case "retry":
			o.Retry = value
		}
	}
	if data != nil {
		o.Data = bytes.Join(data, []byte("\n"))
		if !json.Valid(o.Data) {
			o.Data, _ = json.Marshal(string(o.Data)) // a string is always text
		}
	}
	b, _ := json.Marshal(o) // nor can this fail
	return b
}
