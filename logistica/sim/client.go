package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// client speaks HTTP with the product, and waits while it is away or asks for
// patience.
type client struct {
	url   string
	http  *http.Client
	stats *counters
}

// refused is an answer that the same request will get again.
type refused struct {
	status       int
	method, path string
	detail       string
}

func (e *refused) Error() string {
	return fmt.Sprintf("%s %s: %d %s", e.method, e.path, e.status, e.detail)
}

func statusOf(err error) int {
	var r *refused
	if errors.As(err, &r) {
		return r.status
	}
	return 0
}

// request is one call of the API.
type request struct {
	method, path, key string
	idempotency       string
	body, into        any
}

const (
	firstPause = 100 * time.Millisecond
	maxPause   = 5 * time.Second
	maxAnswer  = 4 << 20 // bytes
)

// do asks until there is an answer or ctx ends. An answer other than 2xx, 429
// and 5xx is *[refused].
func (c *client) do(ctx context.Context, r request) error {
	pause := firstPause
	for {
		wait, err := c.once(ctx, r)
		if err == nil || statusOf(err) != 0 || ctx.Err() != nil {
			return err
		}
		if wait == 0 {
			wait = pause/2 + rand.N(pause) //nolint:gosec // so that not all come back at once
			pause = min(2*pause, maxPause)
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

// once asks once. Where it is worth asking again the error is no *refused, and
// wait is how long the product asked to wait.
func (c *client) once(ctx context.Context, r request) (wait time.Duration, err error) {
	req, err := c.request(ctx, r)
	if err != nil {
		return 0, err
	}
	c.stats.requests.Add(1)
	res, err := c.http.Do(req)
	if err != nil {
		if ctx.Err() == nil {
			c.stats.errors.Add(1)
		}
		return 0, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	defer func() { _ = res.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		c.stats.errors.Add(1)
		return 0, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	case res.StatusCode == http.StatusTooManyRequests:
		c.stats.throttled.Add(1)
		return retryAfter(res.Header), fmt.Errorf("%s %s: asked for patience", r.method, r.path)
	case res.StatusCode >= 500:
		c.stats.errors.Add(1)
		return retryAfter(res.Header), fmt.Errorf("%s %s: status %d", r.method, r.path, res.StatusCode)
	case res.StatusCode >= 300:
		return 0, &refused{res.StatusCode, r.method, r.path, detailOf(answer)}
	case r.into == nil:
		return 0, nil
	}
	if err := json.Unmarshal(answer, r.into); err != nil {
		c.stats.errors.Add(1)
		return 0, &refused{res.StatusCode, r.method, r.path, "an answer that cannot be read: " + err.Error()}
	}
	return 0, nil
}

func (c *client) request(ctx context.Context, r request) (*http.Request, error) {
	var body io.Reader
	if r.body != nil {
		b, err := json.Marshal(r.body)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
		}
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(ctx, r.method, c.url+r.path, body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", r.method, r.path, err)
	}
	if r.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.key != "" {
		req.Header.Set("Authorization", "Bearer "+r.key)
	}
	if r.idempotency != "" {
		req.Header.Set("Idempotency-Key", r.idempotency)
	}
	return req, nil
}

// retryAfter is what an answer asks for, 0 where it does not say.
func retryAfter(h http.Header) time.Duration {
	s, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil || s < 0 {
		return 0
	}
	return min(time.Duration(s)*time.Second, time.Minute)
}

func detailOf(answer []byte) string {
	var p struct{ Title, Detail string }
	if json.Unmarshal(answer, &p) != nil {
		return ""
	}
	if p.Detail != "" {
		return p.Detail
	}
	return p.Title
}
