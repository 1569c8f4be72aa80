package webhook

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/sign"
)

// answer is what came of a call.
type answer struct {
	Attempt
	retryAfter time.Duration
	cut        bool // by the end of the sender: it says nothing
}

func (a *answer) ok() bool { return a.Status >= 200 && a.Status <= 299 && a.Error == "" }

// lives is true if the endpoint is there and not overloaded, whatever it thinks
// of the event.
func (a *answer) lives() bool {
	return a.Status > 0 && a.Status < 500 && a.Status != http.StatusTooManyRequests && a.Error == ""
}

func (s *Sender) send(j *job, t target) {
	defer s.calls.Done()
	a := s.call(j, t)
	s.settle(j, t, a)
}

func (s *Sender) call(j *job, t target) (a answer) {
	at := time.Now()
	ctx, cancel := context.WithTimeout(s.calling, s.cfg.Timeout)
	defer cancel()
	a.At = at.UTC().Truncate(time.Millisecond)
	resp, err := s.post(ctx, j, t, at)
	if err == nil {
		defer func() { _ = resp.Body.Close() }()
		a.Status = resp.StatusCode
		a.retryAfter = retryAfter(resp.Header, at)
		var text []byte
		text, err = io.ReadAll(resp.Body) // the guard cuts it off
		if !a.ok() {
			a.Answer = excerpt(text)
		}
	}
	a.Millis = time.Since(at).Milliseconds()
	if err != nil {
		a.cut = s.calling.Err() != nil
		a.Error = s.why(ctx, err)
	}
	return a
}

func (s *Sender) post(ctx context.Context, j *job, t target, at time.Time) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.url, bytes.NewReader(j.body))
	if err != nil {
		return nil, errors.New("the endpoint's URL cannot be called: give it another")
	}
	keys := t.signing(at)
	if len(keys) == 0 { // an unsigned call must not be made
		return nil, errors.New("the endpoint has no secret: rotate it")
	}
	sign.Headers(req.Header, keys, j.id.String(), at, j.body)
	req.Header.Set("Content-Type", j.contentType)
	req.Header.Set("User-Agent", s.cfg.UserAgent)
	return s.client.Do(req)
}

// why is an error for the tenant to read: without the URL, whose path may be a
// secret, and without what is the sender's own business.
func (s *Sender) why(ctx context.Context, err error) string {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	var timeout net.Error
	switch {
	case ctx.Err() != nil || errors.As(err, &timeout) && timeout.Timeout():
		return "no whole answer within " + s.cfg.Timeout.String()
	case guard.Refused(err):
		var r *guard.RefusedError
		_ = errors.As(err, &r)
		return r.Error()
	}
	var dns *net.DNSError
	if errors.As(err, &dns) {
		return "its name is not found: " + dns.Name
	}
	return excerpt([]byte(err.Error()))
}

// excerpt is the beginning of what may be anything, as text.
func excerpt(b []byte) string {
	if len(b) > maxAnswer {
		b = b[:maxAnswer]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(string(b), "\ufffd"), "\x00", "\ufffd")
}
