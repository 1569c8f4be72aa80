package webhook

import (
	"net/http"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestAttemptsSpreadOverThreeDays(t *testing.T) {
	const window = 72 * time.Hour
	runs, total, early := 200, 0, 0
	for range runs {
		at, n := time.Duration(0), 1
		for {
			at += backoff(n, random)
			if at > window {
				break
			}
			n++
			if at < time.Hour {
				early++
			}
		}
		total += n
	}
	if mean := total / runs; mean < 12 || mean > 26 {
		t.Errorf("%d attempts in %s", mean, window)
	}
	if mean := early / runs; mean < 4 {
		t.Errorf("%d retries in the first hour", mean)
	}
	rapid.Check(t, func(t *rapid.T) {
		d := backoff(rapid.IntRange(1, 1<<30).Draw(t, "attempts"), random)
		if d < time.Second || d > backoffMost {
			t.Fatal(d)
		}
	})
}

func TestRetryAfterIsObeyedWithinBounds(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for text, want := range map[string]time.Duration{
		"": 0, "120": 2 * time.Minute, "0": 0, "-5": 0, "x": 0, "1.5": 0,
		"999999999999": retryAfterMost, "99999999999999999999999": 0,
		now.Add(time.Minute).Format(http.TimeFormat):      time.Minute,
		now.Add(-time.Minute).Format(http.TimeFormat):     0,
		now.AddDate(100, 0, 0).Format(http.TimeFormat):    retryAfterMost,
		strconv.Itoa(int(retryAfterMost / time.Second)):   retryAfterMost,
		strconv.Itoa(int(retryAfterMost/time.Second) + 1): retryAfterMost,
	} {
		if got := retryAfter(http.Header{"Retry-After": {text}}, now); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
	var h health
	h.failed(now, 5*time.Minute, random)
	if h.openUntil != now.Add(5*time.Minute) || h.broken() {
		t.Errorf("%+v", h)
	}
	h = health{}
	h.failed(now, retryAfterMost, random)
	if h.openUntil != now.Add(restMost) {
		t.Errorf("one answer rests the endpoint until %s", h.openUntil)
	}
}

func TestThePaceFollowsTheAnswers(t *testing.T) {
	now := time.Now()
	p := newPace(32)
	if p.limit != 1 {
		t.Errorf("a new endpoint is called %v at a time", p.limit)
	}
	for range 100 {
		p.answered(int(p.limit) - 1)
	}
	if p.limit != 32 {
		t.Errorf("%v after a hundred answers", p.limit)
	}
	for range 10 {
		p.overloaded(now) // of one moment
	}
	if p.limit != 16 {
		t.Errorf("%v after failures of one moment", p.limit)
	}
	p.answered(15)
	if p.limit > 16.1 {
		t.Errorf("%v: it grows as if it had never failed", p.limit)
	}
	before := p.limit
	p.answered(2)
	if p.limit != before {
		t.Error("it grows though less is under way than may be")
	}
	for i := range 20 {
		p.overloaded(now.Add(time.Duration(i+1) * 2 * time.Second))
	}
	if p.limit != 1 {
		t.Errorf("%v after failures for long", p.limit)
	}
}
