package push_test

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/waybillhq/waybill/push"
)

// book tells what is left to credentials, and how often it was asked.
type book struct {
	mu    sync.Mutex
	left  map[string]time.Duration
	away  bool
	asked []string
}

func (b *book) tell(_ context.Context, ids []string) ([]time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.asked = append(b.asked, ids...)
	if b.away {
		return nil, errors.New("the book is away")
	}
	left := make([]time.Duration, len(ids))
	for i, id := range ids {
		left[i] = b.left[id]
	}
	return left, nil
}

func (b *book) with(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
}

// gate is a server that believes whoever names a credential in the path. Those of
// left end so long after they are shown: a slow machine shows none that has ended.
func (s *site) gate(t *testing.T, left map[string]time.Duration) *site {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, channel := strings.TrimPrefix(r.URL.Path, "/"), r.URL.Query().Get("channel")
		by := push.Credential{ID: id}
		if d, ends := left[id]; ends {
			by.Ends = time.Now().Add(d)
		}
		s.Serve(w, r.WithContext(push.WithCredential(r.Context(), by)), channel)
	}))
	t.Cleanup(func() { s.stop(); srv.Close() })
	return &site{Hub: s.Hub, url: srv.URL + "/"}
}

// by is the site as somebody with a credential comes to it.
func (s *site) by(id string) *site {
	return &site{Hub: s.Hub, url: s.url + id}
}

// patient has no heartbeat that ends anything.
func patient(c *push.Config) { c.Heartbeat, c.Recheck = time.Hour, time.Hour }

// over reads until a WebSocket ends.
func (c *talk) over() {
	c.t.Helper()
	for {
		if _, err := c.read(); err != nil {
			if errors.Is(err, context.DeadlineExceeded) {
				c.t.Fatal("it does not end")
			}
			return
		}
	}
}

func TestAStreamEndsWithItsCredential(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, patient).gate(t, map[string]time.Duration{"short": time.Second, "past": -time.Second})
	short, other := s.by("short"), s.by("other")
	stays, _ := other.fresh(t, "a")
	streams := []*stream{short.open(t, "a", ""), short.open(t, "a", "")}
	talk := short.talk(t, "b", "")
	for _, c := range streams {
		c.rest()
	}
	talk.over()
	w.say(t, "a", "k", 1)
	stays.want("k", 1, 1)
	if c := s.by("past").get(t, "a", ""); c.res.StatusCode != http.StatusUnauthorized {
		t.Errorf("one that has ended: %s", c.res.Status)
	}
}

func TestStreamsOfARevokedCredentialEndAndOthersGoOn(t *testing.T) {
	w := newWorld(t, 1)
	reg := prometheus.NewRegistry()
	b := &book{left: map[string]time.Duration{"good": push.Endless, "bad": push.Endless}}
	s := w.site(t, func(c *push.Config) { c.Left, c.Recheck, c.Registerer = b.tell, 20*time.Millisecond, reg }).gate(t, nil)
	good, bad := s.by("good"), s.by("bad")
	stays, _ := good.fresh(t, "a")
	nobodys, _ := s.fresh(t, "a")
	ends := []*stream{bad.open(t, "a", ""), bad.open(t, "b", ""), bad.open(t, "a", "")}
	talk := bad.talk(t, "a", "")
	talk.next()
	b.with(func() { b.away = true }) // while nobody can tell, all stay
	for metric(t, reg, "waybill_push_credential_checks_failed_total") == 0 {
		w.say(t, "c", "k", 1)
	}
	w.say(t, "a", "k", 1)
	talk.want("k", 1, 1)
	b.with(func() { b.away, b.left["bad"] = false, 0 })
	for _, c := range ends {
		c.rest()
	}
	talk.over()
	w.say(t, "a", "k", 2)
	stays.want("k", 1, 2)
	nobodys.want("k", 1, 2)
	if n := metric(t, reg, "waybill_push_credentials_outlived_total"); n != 4 {
		t.Errorf("%v streams counted as ended so, want 4", n)
	}
}

// However many streams a credential has, it is asked about once; and at once
// where there is doubt.
func TestACredentialIsAskedAboutOnceForAllItsStreams(t *testing.T) {
	w := newWorld(t, 1)
	b := &book{left: map[string]time.Duration{"x": push.Endless, "y": push.Endless}}
	s := w.site(t, func(c *push.Config) { patient(c); c.Left = b.tell }).gate(t, nil)
	for range 5 {
		s.by("x").fresh(t, "a")
		s.by("y").fresh(t, "a")
	}
	last := s.by("x").open(t, "a", "")
	gone, _ := s.by("z").fresh(t, "a")
	b.with(func() { b.left["x"] = 0 })
	s.Recheck()
	last.rest()
	gone.rest() // nobody knows it
	b.with(func() {
		counts := map[string]int{}
		for _, id := range b.asked {
			counts[id]++
		}
		if !maps.Equal(counts, map[string]int{"x": 1, "y": 1, "z": 1}) {
			t.Errorf("asked about %v", b.asked)
		}
		b.asked = nil
	})
	s.Recheck()
	for {
		var asked []string
		b.with(func() { asked = slices.Clone(b.asked) })
		if len(asked) > 0 {
			if !slices.Equal(asked, []string{"y"}) {
				t.Errorf("asked about %v", asked)
			}
			return
		}
		w.say(t, "c", "k", 1)
	}
}

// A key that is rotated gets its end while streams are open.
func TestAnEndThatIsSetLaterIsHeeded(t *testing.T) {
	w := newWorld(t, 1)
	b := &book{left: map[string]time.Duration{"x": push.Endless}}
	s := w.site(t, func(c *push.Config) { patient(c); c.Left = b.tell }).gate(t, nil)
	c, _ := s.by("x").fresh(t, "a")
	b.with(func() { b.left["x"] = 300 * time.Millisecond })
	s.Recheck()
	c.rest()
}

// A key that is used too often leaves room for others of its owner.
func TestStreamsOfACredentialAreBounded(t *testing.T) {
	w := newWorld(t, 1)
	s := w.site(t, func(c *push.Config) { patient(c); c.MaxPerCredential = 2 }).gate(t, nil)
	first, _ := s.by("x").fresh(t, "a")
	s.by("x").fresh(t, "b")
	if c := s.by("x").get(t, "c", ""); c.res.StatusCode != http.StatusTooManyRequests || c.res.Header.Get("Retry-After") == "" {
		t.Fatalf("%s", c.res.Status)
	}
	s.by("y").fresh(t, "a")
	s.fresh(t, "a") // without one
	first.close()
	for deadline := time.Now().Add(patience); s.by("x").get(t, "c", "").res.StatusCode != http.StatusOK; {
		if time.Now().After(deadline) {
			t.Fatal("the place of a closed connection was not given again")
		}
	}
}
