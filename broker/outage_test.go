package broker

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

func TestABrokerThatIsAwayIsToldOnceAMinute(t *testing.T) {
	var out bytes.Buffer
	now := time.Now()
	o := NewOutages()
	o.now = func() time.Time { return now }
	l := newLogger(slog.New(slog.NewTextHandler(&out, nil)), o)
	fails := func(n int, addr string) {
		for range n {
			l.Log(kgo.LogLevelWarn, "unable to open connection to broker", "addr", addr, "broker", "seed_0", "err", errors.New("refused"))
		}
	}
	told := func(want int, claim string) {
		t.Helper()
		if got := strings.Count(out.String(), "unable to open"); got != want {
			t.Errorf("%s: %d lines, want %d\n%s", claim, got, want, &out)
		}
		out.Reset()
	}
	fails(100, "a:1")
	told(1, "an outage that begins")
	fails(1, "b:1")
	told(1, "another broker")
	now = now.Add(outageEvery)
	fails(3, "a:1")
	if !strings.Contains(out.String(), "not_told=99") {
		t.Errorf("what was not said is not counted: %s", &out)
	}
	told(1, "a minute later")
	o.OnBrokerConnect(kgo.BrokerMetadata{Host: "a", Port: 1}, 0, nil, errors.New("refused"))
	fails(1, "a:1")
	told(0, "an attempt that failed")
	o.OnBrokerConnect(kgo.BrokerMetadata{Host: "a", Port: 1}, 0, nil, nil)
	fails(2, "a:1")
	told(1, "the next outage")
	l.Log(kgo.LogLevelWarn, "something else")
	l.Log(kgo.LogLevelWarn, "something else")
	if strings.Count(out.String(), "something else") != 2 {
		t.Errorf("other warnings are held back: %s", &out)
	}
}
