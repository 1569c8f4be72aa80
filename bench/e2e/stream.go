package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"
)

// message is what the streams carry as data.
type message struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Subject  string `json:"subject"`
	Sequence int64  `json:"sequence"`
	at       time.Time
}

// stream is an open stream of server-sent events.
type stream struct {
	resp  *http.Response
	lines *bufio.Reader
}

// open connects and waits for the stream's "ready": what happens from then on
// will be seen.
func (r *run) open(ctx context.Context, path string, asMerchant bool) (*stream, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.cfg.URL+path, nil)
	if err != nil {
		return nil, err
	}
	if asMerchant {
		req.Header.Set("Authorization", "Bearer "+r.cfg.Key)
	}
	resp, err := r.client.Do(req) //nolint:bodyclose // the stream closes it
	if err != nil {
		return nil, err
	}
	s := &stream{resp: resp, lines: bufio.NewReaderSize(resp.Body, 64<<10)}
	if resp.StatusCode != http.StatusOK {
		s.close()
		return nil, fmt.Errorf("%s was answered with %s", path, resp.Status)
	}
	for {
		line, err := s.lines.ReadSlice('\n')
		if err != nil {
			s.close()
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if bytes.HasPrefix(line, []byte("event: ready")) {
			return s, nil
		}
	}
}

func (s *stream) close() { _ = s.resp.Body.Close() }

// each calls saw with every message until the stream ends.
func (s *stream) each(saw func(message)) {
	defer s.close()
	for {
		m, ok := s.next()
		if !ok {
			return
		}
		saw(m)
	}
}

// next is the next message that is an event.
func (s *stream) next() (message, bool) {
	for {
		line, err := s.lines.ReadBytes('\n')
		if err != nil {
			return message{}, false
		}
		data, ok := bytes.CutPrefix(line, []byte("data: "))
		if !ok {
			continue
		}
		m := message{at: time.Now()}
		if json.Unmarshal(data, &m) == nil && m.Type != "" { // not "ready" and the like
			return m, true
		}
	}
}
