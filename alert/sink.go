package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"time"
)

// logSink writes to the program's log.
type logSink struct{ log *slog.Logger }

func (logSink) Name() string          { return "log" }
func (logSink) Repeat() time.Duration { return 0 }

func (s logSink) Send(ctx context.Context, n Notice) error {
	if n.Firing() {
		s.log.WarnContext(ctx, "alert fires", "rule", n.Rule, "group", n.Group, "severity", n.Severity, "text", n.Text)
	} else {
		s.log.InfoContext(ctx, "alert is over", "rule", n.Rule, "group", n.Group, "lasted", n.EndedAt.Sub(n.FiredAt).Round(time.Second))
	}
	return nil
}

// poster posts JSON to an address the operator chose. It follows no redirect,
// which would take the text, and a header's secret, to somebody else; and reads
// little of the answer.
type poster struct {
	address string
	headers map[string]string
	client  *http.Client
}

const maxAnswer = 16 << 10 // bytes

func newPoster(url string, headers map[string]string) poster {
	return poster{url, headers, &http.Client{
		Timeout: 10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("it redirects, which is not followed: name the address it redirects to")
		},
	}}
}

func (p *poster) post(ctx context.Context, body any) error {
	b, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, p.address, bytes.NewReader(b))
	if err != nil {
		return errors.New("the address cannot be asked") // not quoted: it may be the secret
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "waybill")
	for k, v := range p.headers {
		req.Header.Set(k, v)
	}
	resp, err := p.client.Do(req)
	if failed := (*url.Error)(nil); errors.As(err, &failed) {
		return failed.Err // without the address, whose path may be the secret
	}
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	said, _ := io.ReadAll(io.LimitReader(resp.Body, maxAnswer)) // what came of it is quoted
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return fmt.Errorf("answered %s: %s", resp.Status, cut(string(said), 256))
	}
	return nil
}

// webhook posts each beginning and end.
type webhook struct{ poster }

// Webhook posts to url, once when an alert fires and once when it is over:
//
//	{"status": "firing" or "resolved", "rule", "group", "severity", "text",
//	 "since", "fired_at", "ended_at"}
//
// with times in RFC 3339. Anything but a 2xx is asked again. Repetition is
// possible, and known by rule, group, status and fired_at.
func Webhook(url string, headers map[string]string) Sink { return webhook{newPoster(url, headers)} }

func (webhook) Name() string          { return "webhook" }
func (webhook) Repeat() time.Duration { return 0 }

func (s webhook) Send(ctx context.Context, n Notice) error {
	body := map[string]any{
		"status": "firing", "rule": n.Rule, "group": n.Group, "severity": n.Severity, "text": n.Text,
		"since": n.Since, "fired_at": n.FiredAt,
	}
	if !n.Firing() {
		body["status"], body["ended_at"] = "resolved", n.EndedAt
	}
	return s.post(ctx, body)
}

// alertmanager speaks Prometheus Alertmanager's API v2.
type alertmanager struct{ poster }

// Alertmanager posts to an Alertmanager at base, such as
// http://alertmanager:9093. It hears of an alert that goes on every minute, and
// takes it for over when it has not for five.
func Alertmanager(base string, headers map[string]string) Sink {
	return alertmanager{newPoster(joinPath(base, "/api/v2/alerts"), headers)}
}

func joinPath(base, path string) string {
	for len(base) > 0 && base[len(base)-1] == '/' {
		base = base[:len(base)-1]
	}
	return base + path
}

const (
	remind     = time.Minute
	remembered = 5 * remind
)

func (alertmanager) Name() string          { return "alertmanager" }
func (alertmanager) Repeat() time.Duration { return remind }

// postable is an element of the body of POST /api/v2/alerts.
type postable struct {
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    time.Time         `json:"startsAt"`
	EndsAt      time.Time         `json:"endsAt"`
}

func (s alertmanager) Send(ctx context.Context, n Notice) error {
	ends := n.EndedAt
	if n.Firing() {
		ends = time.Now().Add(remembered)
	}
	return s.post(ctx, []postable{{
		Labels: map[string]string{
			"alertname": n.Rule, "group": n.Group, "severity": n.Severity, "service": "waybill",
		},
		Annotations: map[string]string{"summary": n.Text},
		StartsAt:    n.FiredAt, EndsAt: ends,
	}})
}
