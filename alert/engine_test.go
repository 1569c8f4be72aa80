package alert

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := pg.Migrate(t.Context(), db, incident.Migration(), Migration()); err != nil {
		t.Fatal(err)
	}
	return db
}

// receiver keeps what is posted to it.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	refuse int // so many times
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		b, _ := io.ReadAll(req.Body)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.refuse > 0 {
			r.refuse--
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		r.bodies = append(r.bodies, req.Method+" "+req.URL.Path+" "+req.Header.Get("Content-Type")+" "+req.Header.Get("X-Key")+"\n"+string(b))
	}))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) got() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]string(nil), r.bodies...)
}

// source is the readings of a test.
type source struct {
	mu       sync.Mutex
	readings []Reading
	err      error
	asked    int
}

func (s *source) set(rs ...Reading) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.readings = rs
}

func (s *source) read(context.Context) ([]Reading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	return s.readings, s.err
}

func start(t *testing.T, db *pgxpool.Pool, s *source, rules []Rule, sinks ...Sink) (stop func()) {
	t.Helper()
	e := New(Deps{DB: db, Read: s.read}, Config{
		Rules: rules, Sinks: sinks, Every: 20 * time.Millisecond, Look: 20 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := time.After(3 * time.Minute)
	for !cond() {
		select {
		case <-limit:
			t.Fatal("never: " + what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func count(t *testing.T, db *pgxpool.Pool, sql string) (n int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func behind(group string, n int64) Reading {
	return Reading{Group: group, Events: &n, Known: true, Worst: "accounts/3 " + group}
}

func rules(t *testing.T) []Rule {
	return []Rule{rule(t, "events > 5 clear for 50ms")}
}

func TestAnAlertIsToldOnceAndItsEndOnce(t *testing.T) {
	db, hook, s := database(t), newReceiver(t), &source{}
	start(t, db, s, rules(t), Webhook(hook.URL+"/alerts", map[string]string{"X-Key": "secret"}))
	s.set(behind("billing", 9), behind("quiet", 1))
	eventually(t, "told", func() bool { return len(hook.got()) == 1 })
	s.set(behind("billing", 1), behind("quiet", 1))
	eventually(t, "the end told, and forgotten", func() bool {
		return len(hook.got()) == 2 && count(t, db, `SELECT count(*) FROM waybill.alerts`) == 0
	})
	for i, status := range []string{"firing", "resolved"} {
		head, body, _ := strings.Cut(hook.got()[i], "\n")
		if head != "POST /alerts application/json secret" {
			t.Errorf("%q", head)
		}
		var got struct {
			Status, Rule, Group, Severity, Text string
			Since, FiredAt, EndedAt             time.Time
		}
		if err := json.Unmarshal([]byte(strings.NewReplacer("fired_at", "FiredAt", "ended_at", "EndedAt").Replace(body)), &got); err != nil {
			t.Fatal(err)
		}
		if got.Status != status || got.Rule != "r" || got.Group != "billing" || got.FiredAt.IsZero() || got.EndedAt.IsZero() != (i == 0) {
			t.Errorf("%+v", got)
		}
		if i == 0 && (!strings.Contains(got.Text, "9 events behind") || !strings.Contains(got.Text, "accounts/3")) {
			t.Errorf("%q", got.Text)
		}
	}
	seen, err := incident.List(t.Context(), db, time.Time{}, 10)
	if err != nil || len(seen) != 1 || seen[0].Part != "alert" || seen[0].Subject != "billing" || seen[0].Count != 1 {
		t.Errorf("incidents: %+v %v", seen, err)
	}
}

func TestARestartTellsNothingTwiceAndForgetsNothing(t *testing.T) {
	db, hook, s := database(t), newReceiver(t), &source{}
	s.set(behind("billing", 9))
	stop := start(t, db, s, rules(t), Webhook(hook.URL, nil))
	eventually(t, "told", func() bool {
		return len(hook.got()) == 1 && count(t, db, `SELECT count(*) FROM waybill.alert_notices WHERE heard = 'firing'`) == 2
	})
	stop()
	// It goes on while nobody watches, and two processes come back.
	start(t, db, s, rules(t), Webhook(hook.URL, nil))
	start(t, db, s, rules(t), Webhook(hook.URL, nil))
	s.set(behind("billing", 9), behind("sentinel", 9))
	eventually(t, "both look again", func() bool { return len(hook.got()) == 2 })
	if !strings.Contains(hook.got()[1], "sentinel") {
		t.Fatalf("told again: %s", hook.got()[1])
	}
	s.set()
	eventually(t, "both ends are told, once each", func() bool {
		return len(hook.got()) >= 4 && count(t, db, `SELECT count(*) FROM waybill.alerts`) == 0
	})
	if got := hook.got(); len(got) != 4 {
		t.Errorf("%d notices: %v", len(got), got)
	}
}

func TestAReceiverThatIsAwayIsToldLater(t *testing.T) {
	db, hook, s := database(t), newReceiver(t), &source{}
	hook.refuse = 1
	s.set(behind("billing", 9))
	start(t, db, s, rules(t), Webhook(hook.URL, nil))
	eventually(t, "the refusal is kept", func() bool {
		return count(t, db, `SELECT count(*) FROM waybill.alert_notices WHERE sink = 'webhook' AND error LIKE '%503%not now%'`) == 1
	})
	eventually(t, "the log does not wait for it", func() bool {
		return count(t, db, `SELECT count(*) FROM waybill.alert_notices WHERE sink = 'log' AND heard = 'firing'`) == 1
	})
	eventually(t, "told", func() bool { return len(hook.got()) == 1 })
}

func TestARedirectIsNotFollowed(t *testing.T) {
	other := newReceiver(t)
	here := httptest.NewServer(http.RedirectHandler(other.URL, http.StatusTemporaryRedirect))
	defer here.Close()
	err := Webhook(here.URL, map[string]string{"X-Key": "secret"}).Send(t.Context(), Notice{Rule: "r"})
	if err == nil || !strings.Contains(err.Error(), "redirects") || len(other.got()) != 0 {
		t.Errorf("%v, %v", err, other.got())
	}
}

func TestWhileReadingFailsNothingClears(t *testing.T) {
	db, hook, s := database(t), newReceiver(t), &source{}
	s.set(behind("billing", 9))
	start(t, db, s, rules(t), Webhook(hook.URL, nil))
	eventually(t, "told", func() bool { return len(hook.got()) == 1 })
	s.mu.Lock()
	s.readings, s.err, s.asked = nil, errors.New("away"), 0
	s.mu.Unlock()
	eventually(t, "asked while it fails, for longer than clearing takes", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.asked > 10
	})
	before := count(t, db, `SELECT count(*) FROM waybill.alerts WHERE resolved_at IS NULL`)
	s.mu.Lock()
	s.readings, s.err = []Reading{behind("billing", 9), behind("next", 9)}, nil
	s.mu.Unlock()
	eventually(t, "it watches again", func() bool { return len(hook.got()) == 2 })
	if before != 1 || !strings.Contains(hook.got()[1], "next") {
		t.Errorf("%d, %v", before, hook.got())
	}
}

// What an Alertmanager hears is held against its published API: POST
// /api/v2/alerts takes an array of postable alerts, times in RFC 3339, endsAt in
// the future for one that fires and in the past for one that is over.
func TestAlertmanagerHearsItsOwnProtocol(t *testing.T) {
	db, am, s := database(t), newReceiver(t), &source{}
	s.set(behind("billing", 9))
	start(t, db, s, rules(t), Alertmanager(am.URL+"/", nil))
	eventually(t, "told", func() bool { return len(am.got()) == 1 })
	s.set(behind("billing", 0))
	eventually(t, "its end told", func() bool { return len(am.got()) == 2 })
	type alert struct {
		Labels, Annotations map[string]string
		StartsAt, EndsAt    time.Time
	}
	read := func(i int) alert {
		head, body, _ := strings.Cut(am.got()[i], "\n")
		if head != "POST /api/v2/alerts application/json " {
			t.Errorf("%q", head)
		}
		d := json.NewDecoder(strings.NewReader(body))
		d.DisallowUnknownFields()
		var all []alert
		if err := d.Decode(&all); err != nil || len(all) != 1 {
			t.Fatalf("%v %s", err, body)
		}
		return all[0]
	}
	begin, end := read(0), read(1)
	if begin.Labels["alertname"] != "r" || begin.Labels["group"] != "billing" || begin.Labels["severity"] != "warning" || begin.Annotations["summary"] == "" {
		t.Errorf("%+v", begin)
	}
	if !begin.EndsAt.After(time.Now().Add(time.Minute)) || end.EndsAt.After(time.Now().Add(time.Second)) || !end.StartsAt.Equal(begin.StartsAt) {
		t.Errorf("begin %+v end %+v", begin, end)
	}
	for k, v := range begin.Labels { // they are its identity there
		if end.Labels[k] != v {
			t.Errorf("label %s was %q, is %q", k, v, end.Labels[k])
		}
	}
}

func TestAnAlertOfARuleThatIsNoMoreEnds(t *testing.T) {
	db, hook, s := database(t), newReceiver(t), &source{}
	s.set(behind("billing", 9))
	stop := start(t, db, s, rules(t), Webhook(hook.URL, nil))
	eventually(t, "told", func() bool { return len(hook.got()) == 1 })
	stop()
	other := rule(t, "events > 100")
	other.Name = "other"
	start(t, db, s, []Rule{other}, Webhook(hook.URL, nil))
	eventually(t, "its end told", func() bool { return len(hook.got()) == 2 })
	if !strings.Contains(hook.got()[1], "no more") {
		t.Error(hook.got()[1])
	}
}

// The addresses of many receivers are all their secret there is.
func TestAFailureDoesNotTellTheAddress(t *testing.T) {
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	for _, address := range []string{gone.URL + "/services/hush", "http://\x7f/hush"} {
		if err := Webhook(address, nil).Send(t.Context(), Notice{}); err == nil || strings.Contains(err.Error(), "hush") {
			t.Error(err)
		}
	}
}
