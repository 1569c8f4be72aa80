package e2e

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/test/proc"
)

// message is one message of an event stream.
type message struct {
	ID    string
	Event string
	Raw   string
	Data  struct {
		ID, Type, Subject string
		Sequence          int64
	}
}

func (m message) fact() string { return fact(m.Data.Type, m.Data.Sequence) }

// stream is a client of an event stream that always reads.
type stream struct {
	t        *testing.T
	messages chan message
	close    func()
	last     string // id of the last message that next returned
}

// follow opens a stream and returns once the hub has said that it is ready, or,
// with the id of a message, has accepted it as the place to go on.
func follow(t *testing.T, w *proc.Waybill, key, path, lastID string) *stream {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, w.HTTP+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		t.Fatalf("stream %s: %s %v", path, resp.Status, resp.Header)
	}
	s := &stream{t: t, messages: make(chan message, 10_000), last: lastID}
	s.close = func() { _ = resp.Body.Close() }
	t.Cleanup(s.close)
	go s.run(bufio.NewScanner(resp.Body))
	if lastID != "" {
		return s
	}
	if m := s.next(); m.Event != "ready" {
		t.Fatalf("stream %s opens with %+v", path, m)
	}
	return s
}

func (s *stream) run(lines *bufio.Scanner) {
	defer close(s.messages)
	lines.Buffer(nil, 1<<20)
	var m message
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch name {
		case "id":
			m.ID = value
		case "event":
			m.Event = value
		case "data":
			m.Raw += value
		case "":
			if m.Raw != "" && json.Unmarshal([]byte(m.Raw), &m.Data) == nil {
				s.messages <- m
			}
			m = message{}
		}
	}
}

// next waits for a message; the end of the stream is a fault here.
func (s *stream) next() message {
	s.t.Helper()
	m, open := s.nextUnlessOver()
	if !open {
		s.t.Fatal("the stream has ended")
	}
	return m
}

// nextUnlessOver waits for a message or the end of the stream.
func (s *stream) nextUnlessOver() (m message, open bool) {
	s.t.Helper()
	select {
	case m, open = <-s.messages:
		if open {
			s.last = m.ID
		}
	case <-time.After(patience):
		s.t.Fatalf("no message within %v", patience)
	}
	return m, open
}

// take reads n messages into got, by order.
func (s *stream) take(got map[string][]string, n int) {
	s.t.Helper()
	for range n {
		m := s.next()
		if m.Event != "" {
			s.t.Fatalf("a message named %s: %s", m.Event, m.Raw)
		}
		got[m.Data.Subject] = append(got[m.Data.Subject], m.fact())
	}
}
