package sim

import (
	"bufio"
	"context"
	"net/http"
	"strings"
	"time"
)

// listen follows a courier's calls and wakes whoever waits on woken. A call that
// is missed costs time only: the courier looks for jobs now and then anyway.
func (s *Sim) listen(ctx context.Context, key string, woken chan<- struct{}) {
	pause := firstPause
	for ctx.Err() == nil {
		wait, heard := s.hear(ctx, key, woken)
		if heard {
			pause = firstPause
		}
		if sleep(ctx, max(wait, pause)) != nil {
			return
		}
		pause = min(2*pause, maxPause)
	}
}

// hear reads one stream to its end.
func (s *Sim) hear(ctx context.Context, key string, woken chan<- struct{}) (wait time.Duration, heard bool) {
	req, err := s.client.request(ctx, request{method: http.MethodGet, path: "/v1/courier/events", key: key})
	if err != nil {
		return 0, false
	}
	res, err := s.streams.Do(req)
	if err != nil {
		return 0, false
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return retryAfter(res.Header), false
	}
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		heard = true
		if strings.HasPrefix(lines.Text(), "data:") {
			wake(woken)
		}
	}
	return 0, heard
}

// wake tells whoever waits that there is something to look at.
func wake(woken chan<- struct{}) {
	select {
	case woken <- struct{}{}:
	default:
	}
}
