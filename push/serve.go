package push

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// Serve answers r with the stream of channel and returns when the connection
// is over, or once it was taken over from net/http: plain HTTP/1 is, and
// then lives on without its request. The caller has authenticated r and derived channel from its
// credential.
//
// It is a stream of Server-Sent Events, or a WebSocket if that is what r asks
// for. A client that brings the id of its last message, as Last-Event-ID or in the
// query as last_event_id, continues behind it; else the stream opens with
// [EventReady]. Refusals are problem details with Retry-After: 503 while the log
// is not loaded, on shutdown and beyond MaxConnections, 429 beyond MaxPerChannel,
// MaxPerCredential and MaxPerKey; 401, without it, for a credential that has ended.
//
// The stream ends with the credential of [WithCredential] at the latest.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, channel string) {
	key := ""
	if h.cfg.KeyOf != nil {
		key = h.cfg.KeyOf(r)
	}
	c, opening, refused := h.join(channel, key, lastEventID(r), credentialOf(r.Context()))
	if refused != nil {
		h.refuse(w, r, refused)
		return
	}
	if wantsWebSocket(r) {
		defer h.leave(c, key)
		h.serveWebSocket(w, r, c, opening)
		return
	}
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	if s := takeOver(w, r); s != nil {
		h.follow(c, key, s, opening)
		return
	}
	defer h.leave(c, key)
	c.onRequest()
	s := stream{conn: c, w: w, rc: http.NewResponseController(w), timeout: h.cfg.WriteTimeout, hub: h}
	s.run(r.Context(), opening)
}

// follow serves a socket until its client goes.
func (h *Hub) follow(c *conn, key string, s *socket, opening [][]byte) {
	s.opening = append(append(s.opening, retry(h.cfg.Retry)), opening...)
	c.onSocket(s, h.writers.ask)
	go func() {
		defer h.leave(c, key)
		s.watch()
	}()
}

func lastEventID(r *http.Request) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return r.URL.Query().Get("last_event_id")
}

// refusal is why a connection is not taken.
type refusal struct {
	bound  string
	status int
	detail string
	after  int // seconds, 0 where waiting does not help
}

var (
	notLoaded     = &refusal{"not_loaded", http.StatusServiceUnavailable, "The stream is starting or stopping.", 1}
	tooMany       = &refusal{"connections", http.StatusServiceUnavailable, "This server holds as many streams as it can.", 5}
	perChannel    = &refusal{"channel", http.StatusTooManyRequests, "Too many streams of this channel are open.", 10}
	outlived      = &refusal{"credential", http.StatusUnauthorized, "The credential has ended: come with another.", 0}
	perCredential = &refusal{"per_credential", http.StatusTooManyRequests, "Too many streams are open with this credential.", 10}
	perKey        = &refusal{"key", http.StatusTooManyRequests, "Too many streams of this caller are open.", 10}
)

// join registers a connection and finds what it missed, both under one lock:
// whatever is read from the log later is queued behind.
func (h *Hub) join(channel, key, last string, by Credential) (*conn, [][]byte, *refusal) {
	h.mu.Lock()
	defer h.mu.Unlock()
	life := h.cfg.MaxLife
	if !by.Ends.IsZero() {
		life = min(life, time.Until(by.Ends))
	}
	if life <= 0 {
		return nil, nil, outlived
	}
	if refused := h.admit(channel, key, by); refused != nil {
		return nil, nil, refused
	}
	c := newConn(h.cfg.Buffer)
	c.until = time.Now().Add(lifetime(life))
	ch := h.window.channel(channel)
	h.attach(c, ch)
	h.bear(c, by)
	h.count(key, 1)
	h.open.Add(1)
	return c, h.opening(c, ch, last), nil
}

func (h *Hub) admit(channel, key string, by Credential) *refusal {
	if h.closing || h.window == nil {
		return notLoaded
	}
	if h.total >= h.cfg.MaxConnections {
		return tooMany
	}
	if ch := h.window.channels[channel]; ch != nil && len(ch.conns) >= h.cfg.MaxPerChannel {
		return perChannel
	}
	if b := h.bearers[by.ID]; b != nil && len(b.conns) >= h.cfg.MaxPerCredential {
		return perCredential
	}
	if h.cfg.MaxPerKey > 0 && key != "" && h.perKey[key] >= h.cfg.MaxPerKey {
		return perKey
	}
	return nil
}

func (h *Hub) count(key string, n int) {
	h.total += n
	h.metrics.connections.Add(float64(n))
	if key == "" {
		return
	}
	h.perKey[key] += n
	if h.perKey[key] == 0 {
		delete(h.perKey, key)
	}
}

func (h *Hub) leave(c *conn, key string) {
	c.over()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.detach(c)
	h.count(key, -1)
	h.open.Done()
}

// opening is what a connection gets first: what the client missed, or the
// message that it must load a snapshot.
func (h *Hub) opening(c *conn, ch *channel, last string) [][]byte {
	w := h.window
	if last == "" {
		return [][]byte{h.sealer.signal(EventReady, "", w.layout, w.cursor())}
	}
	var frames []*frame
	var personal bool
	result := outcomeInvalid
	cur, err := h.sealer.open(last, w.layout)
	if err == nil {
		frames, personal, result = w.since(ch, cur)
	}
	h.metrics.resumes.WithLabelValues(string(result)).Inc()
	if result != outcomeTail {
		return [][]byte{h.sealer.signal(EventReset, string(result), w.layout, w.cursor())}
	}
	if personal {
		return h.replayPersonal(c, cur, frames)
	}
	return wire(frames)
}

func wire(frames []*frame) [][]byte {
	b := make([][]byte, len(frames))
	for i, f := range frames {
		b[i] = f.bytes
	}
	return b
}

// replayPersonal gives the frames cursors that continue cur, which came from
// another hub's order: the ids this hub gave them would say too little of what
// the client has seen elsewhere, and lead to repeats.
func (h *Hub) replayPersonal(c *conn, cur *cursor, frames []*frame) [][]byte {
	cur.epoch, cur.index, cur.part = [8]byte{}, 0, 0
	c.personal = cur
	var out [][]byte
	for _, f := range frames {
		if b := h.personal(c, f); b != nil {
			out = append(out, b)
		}
	}
	h.ahead(c)
	return out
}

// personal is f with the client's own cursor behind it, nil if the client has
// seen it.
func (h *Hub) personal(c *conn, f *frame) []byte {
	if c.personal.seen(f) {
		return nil
	}
	c.personal.advance(f)
	return h.sealer.appendID(slices.Clone(f.bytes[:f.body]), h.window.layout, c.personal)
}

func (h *Hub) refuse(w http.ResponseWriter, r *http.Request, why *refusal) {
	h.metrics.refused.WithLabelValues(why.bound).Inc()
	header := w.Header()
	header.Set("Content-Type", "application/problem+json")
	header.Set("Cache-Control", "no-store")
	if why.after > 0 {
		header.Set("Retry-After", strconv.Itoa(why.after))
	}
	w.WriteHeader(why.status)
	err := json.NewEncoder(w).Encode(map[string]any{
		"type": "about:blank", "title": http.StatusText(why.status),
		"status": why.status, "detail": why.detail,
	})
	if err != nil {
		h.log.DebugContext(r.Context(), "push refusal not written", "error", err)
	}
}
