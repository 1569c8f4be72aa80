package up

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/push"
	"github.com/waybillhq/waybill/test/proc"
)

// What a module's statement must not read, the managed server refuses it.
func TestModulesCannotReadEachOther(t *testing.T) {
	w := proc.Up(t)
	for _, module := range []string{"orders", "couriers", "billing", "dispatch", "tracking"} {
		own := map[string]string{
			"orders": "orders.orders", "couriers": "couriers.couriers", "billing": "billing.fees",
			"dispatch": "dispatch.notices", "tracking": "tracking.rides",
		}
		c, err := pgx.Connect(t.Context(), w.Database)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close(context.Background()) })
		if _, err := c.Exec(t.Context(), "SET ROLE "+pgx.Identifier{"waybill_" + module}.Sanitize()); err != nil {
			t.Fatalf("the managed database has no wall for %s: %v", module, err)
		}
		read := func(table string) error {
			_, err := c.Exec(t.Context(), "SELECT FROM "+table+" LIMIT 1")
			return err
		}
		for _, table := range []string{own[module], "waybill.outbox_events", "waybill.inbox"} {
			if err := read(table); err != nil {
				t.Errorf("%s cannot read %s: %v", module, table, err)
			}
		}
		delete(own, module)
		for _, table := range append([]string{"waybill.secret", "tenants.tenants", "tenants.api_keys", "analytics.orders_by_state"}, values(own)...) {
			if err := read(table); err == nil || !strings.Contains(err.Error(), "42501") {
				t.Errorf("%s reads %s: %v", module, table, err)
			}
		}
		if _, err := c.Exec(t.Context(), "CREATE TABLE "+module+".mine (n int)"); err == nil || !strings.Contains(err.Error(), "42501") {
			t.Errorf("%s makes tables: %v", module, err)
		}
	}
}

func values(m map[string]string) (out []string) {
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

var complaint = regexp.MustCompile(`(?m)^.*(level=(WARN|ERROR)|\b(WARN|ERROR)\b|"level":"(WARN|ERROR)").*$`)

// A log that warns when nothing is wrong is not read when something is.
func TestANormalStartComplainsOfNothing(t *testing.T) {
	w := proc.Up(t)
	place(t, w)
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	first := w.Output()
	w.Start()
	place(t, w)
	for n, out := range []string{first, w.Output()} {
		if out == "" {
			t.Error("it says nothing at all")
		}
		for _, line := range complaint.FindAllString(out, -1) {
			t.Errorf("start %d: %s", n+1, line)
		}
	}
}

// A merchant's stream carries its own events and nobody else's, a customer's
// its order's: each is read to an event that came after all the others'.
func TestStreamsOfTwoMerchantsStayApart(t *testing.T) {
	w := proc.Up(t)
	db, err := pg.Open(t.Context(), w.Database, pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d := tenants.New(db, tenants.Config{})
	m, err := d.Create(t.Context(), "Pizzaria Deles")
	if err != nil {
		t.Fatal(err)
	}
	theirKey, _, err := d.IssueKey(t.Context(), m.ID, tenants.Merchant)
	if err != nil {
		t.Fatal(err)
	}
	rider, _, err := d.IssueCourierKey(t.Context(), event.NewID())
	if err != nil {
		t.Fatal(err)
	}
	ours := *w
	theirs := *w
	theirs.DemoKey = theirKey
	type stream struct {
		events <-chan string
		mine   map[string]bool
	}
	streams := map[string]stream{
		"ours":                 {follow(t, w.HTTP+"/v1/events", w.DemoKey), map[string]bool{}},
		"theirs":               {follow(t, w.HTTP+"/v1/events", theirKey), map[string]bool{}},
		"courier":              {follow(t, w.HTTP+"/v1/courier/events", rider), nil},
		"ours, by WebSocket":   {talk(t, w.HTTP+"/v1/events", w.DemoKey), map[string]bool{}},
		"theirs, by WebSocket": {talk(t, w.HTTP+"/v1/events", theirKey), map[string]bool{}},
	}
	var last struct{ ours, theirs string }
	for range 10 {
		last.ours, last.theirs = place(t, &ours), place(t, &theirs)
		for _, way := range []string{"", ", by WebSocket"} {
			streams["ours"+way].mine[last.ours], streams["theirs"+way].mine[last.theirs] = true, true
		}
	}
	for name, until := range map[string]string{
		"ours": last.ours, "theirs": last.theirs, "ours, by WebSocket": last.ours, "theirs, by WebSocket": last.theirs,
	} {
		for subject := ""; subject != until; {
			if subject = await(t, streams[name].events, "the last order on "+name); !streams[name].mine[subject] {
				t.Errorf("the stream of %s carries %s", name, subject)
			}
		}
	}
	// What the pair above had been sent by then, the courier would have been sent.
	select {
	case subject := <-streams["courier"].events:
		t.Errorf("a courier without an order hears of %s", subject)
	default:
	}
}

// follow gives the subjects of a stream's events, once it is ready.
func follow(t *testing.T, url, key string) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s is refused: %s", url, resp.Status)
	}
	ready, events := make(chan struct{}), make(chan string, 10_000)
	go func() {
		defer close(events)
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			if lines.Text() == "event: ready" {
				close(ready)
			}
			var e struct{ Subject string }
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &e) == nil && e.Subject != "" {
				events <- e.Subject
			}
		}
	}()
	select {
	case <-ready:
	case <-time.After(2 * time.Minute):
		t.Fatalf("%s is never ready", url)
	}
	return events
}

// talk is follow over a WebSocket, with the key where a browser can put it.
func talk(t *testing.T, url, key string) <-chan string {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), url, &websocket.DialOptions{Subprotocols: []string{push.Subprotocol, "bearer." + key}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ws.CloseNow() })
	ready, events := make(chan struct{}), make(chan string, 10_000)
	go func() {
		defer close(events)
		for {
			_, b, err := ws.Read(t.Context())
			if err != nil {
				return
			}
			var m struct {
				Event string
				Data  struct{ Subject string }
			}
			_ = json.Unmarshal(b, &m) // what carries no subject is none of ours
			switch {
			case m.Event == push.EventReady:
				close(ready)
			case m.Data.Subject != "":
				events <- m.Data.Subject
			}
		}
	}()
	await(t, ready, url+" to be ready")
	return events
}
