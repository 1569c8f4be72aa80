package cli

import (
	"net/http"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/test/proc"
)

// TestUp shares one `waybill up`.
func TestUp(t *testing.T) {
	w := proc.Up(t)
	// The commands find Postgres and registry in the folder, and the broker
	// there too unless it is another's.
	s := func(args ...string) proc.Command {
		return proc.Command{Args: append(args, "--dir", w.Dir), Env: w.Env}
	}
	for range 3 {
		if status, body, err := w.Request(t.Context(), http.MethodPost, "/v1/orders", proc.Order); err != nil || status != http.StatusCreated {
			t.Fatalf("%d %s %v", status, body, err)
		}
	}
	t.Run("what prints data prints JSON", func(t *testing.T) {
		tailed := s("tail", "orders.events", "--json", "--count", "1").Run(t)
		if b := parse[struct{ Body, Headers map[string]any }](t, tailed); b.Body["order_id"] == "" || b.Headers["ce_type"] != "logistica.orders.OrderCreated" {
			t.Errorf("tail: %s", tailed.Out)
		}
		topics := parse[[]struct {
			Name    string
			Records *int64
		}](t, s("topics", "orders.events", "--json").Run(t))
		if len(topics) != 1 || topics[0].Records == nil || *topics[0].Records < 1 {
			t.Errorf("topics: %+v", topics)
		}
		parse[[]any](t, s("topics", "--json").Run(t))
		parse[[]any](t, s("groups", "--json").Run(t))
		parse[[]any](t, s("lag", "--json").Run(t))
		parse[[]any](t, s("incidents", "--json").Run(t))
		if d := parse[struct {
			OK, Fail int
		}](t, s("doctor", "--json").Run(t)); d.Fail > 0 || d.OK < 20 {
			t.Errorf("doctor: %+v", d)
		}
		status := parse[map[string]any](t, s("outbox", "status", "--json").Run(t))
		if len(status) == 0 {
			t.Error("outbox status: nothing")
		}
	})
	t.Run("and for people", func(t *testing.T) {
		for line, say := range map[string]string{
			"topics":                       "orders.events",
			"groups":                       "analytics",
			"lag":                          "analytics",
			"outbox status":                "active",
			"incidents":                    "no incidents",
			"doctor":                       "0 failed",
			"tail orders.events --count 1": "logistica.orders.OrderCreated",
		} {
			r := s(strings.Fields(line)...).Run(t)
			check(t, r, 0)
			if !strings.Contains(r.Out, say) {
				t.Errorf("waybill %s does not say %s:\n%s", line, say, r.Out)
			}
		}
	})
	t.Run("tenant makes a merchant whose key opens", func(t *testing.T) {
		type key struct{ Tenant, Key string }
		made := parse[key](t, s("tenant", "create", "Mercado Central", "--json").Run(t))
		more := parse[key](t, s("tenant", "key", "issue", made.Tenant, "--json").Run(t))
		for _, k := range []string{made.Key, more.Key} {
			status, body, err := w.Request(t.Context(), http.MethodGet, "/v1/me", "", "Authorization", "Bearer "+k)
			if err != nil || status != http.StatusOK || !strings.Contains(string(body), "Mercado Central") {
				t.Errorf("%d %s %v", status, body, err)
			}
		}
		check(t, s("tenant", "key", "issue", "0190f5e0-0000-7000-8000-00000000abcd").Run(t), 1, "no such tenant", "tenant create")
		check(t, s("tenant", "key", "issue", "nonsense").Run(t), 2, "tenant create")
	})
	t.Run("webhook adds an endpoint whose secret the API opens", func(t *testing.T) {
		const demo = "0190f5e0-0000-7000-8000-000000000001"
		made := parse[struct{ ID, Secret string }](t, s("webhook", "add", "https://example.com/hook", "--tenant", demo, "--json").Run(t))
		status, body, err := w.Request(t.Context(), http.MethodGet, "/v1/webhooks/endpoints/"+made.ID+"/secrets", "")
		if err != nil || status != http.StatusOK || !strings.Contains(string(body), made.Secret) || !strings.HasPrefix(made.Secret, "whsec_") {
			t.Errorf("%d %s %v, want %s", status, body, err, made.Secret)
		}
		check(t, s("webhook", "add", "http://127.0.0.1:1/", "--tenant", demo).Run(t), 2, "not public")
		check(t, s("webhook", "rm", made.ID, "--tenant", demo).Run(t), 0)
		status, body, err = w.Request(t.Context(), http.MethodPost, "/v1/webhooks/endpoints", `{"url":"http://169.254.169.254/latest"}`)
		if err != nil || status != http.StatusUnprocessableEntity {
			t.Errorf("an address that is not public: %d %s %v", status, body, err)
		}
	})
	t.Run("bench e2e measures a running one", func(t *testing.T) {
		checkBench(t, proc.Run(t, "bench", "e2e", "--rate", "20", "--seconds", "1", "--json", "--url", w.HTTP, "--key", w.DemoKey))
	})
	t.Run("bench e2e tells a key that is not valid", func(t *testing.T) {
		check(t, proc.Run(t, "bench", "e2e", "--url", w.HTTP, "--key", "wrong"), 1, "401")
	})
}

func TestOutboxStatusBeforeAnyRelay(t *testing.T) {
	dsn := pgtest.New(t)
	r := proc.Run(t, "outbox", "status", "--database", dsn)
	if r.Code == 0 {
		if !strings.Contains(r.Out, "no relay has run") {
			t.Error(r.Out)
		}
		return
	}
	check(t, r, 1, "outbox")
	if strings.Contains(r.Err, dsn) {
		t.Error("the message tells the password")
	}
}
