package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/webhook"
	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/seal"
	"github.com/waybillhq/waybill/webhook/sign"
)

const webhookTestKey = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="

// webhooks runs a command of waybill webhook.
func webhooks(ctx context.Context, args ...string) (code int, out, errOut string) {
	var o, e bytes.Buffer
	cmd := newWebhook()
	wrapArgs(cmd)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	cmd.SetOut(&o)
	cmd.SetErr(&e)
	err := cmd.ExecuteContext(ctx)
	var usage usageError
	switch {
	case errors.As(err, &usage):
		code = exitUsage
	case err != nil:
		code = exitFailed
	}
	if err != nil {
		e.WriteString(err.Error())
	}
	return code, o.String(), e.String()
}

func TestWebhooksFromTheCommandLine(t *testing.T) {
	t.Setenv(config.EnvWebhookKeys, webhookTestKey)
	db, dsn := emptyDatabase(t)
	tenant := event.NewID().String()
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, errOut := webhooks(t.Context(), append(args, "--database", dsn, "--tenant", tenant)...)
		if code != want {
			t.Fatalf("%v: %d %s %s", args, code, out, errOut)
		}
		return out + errOut
	}
	says := func(out string, texts ...string) {
		t.Helper()
		for _, text := range texts {
			if !strings.Contains(out, text) {
				t.Errorf("%s, want it to say %q", out, text)
			}
		}
	}
	says(run(exitFailed, "ls"), "waybill up")
	if err := pg.Migrate(t.Context(), db, incident.Migration(), tenants.Migration(), webhook.Migration()); err != nil {
		t.Fatal(err)
	}
	if err := webhook.EnsureDays(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	says(run(exitOK, "ls"), "waybill webhook add")
	if code, _, errOut := webhooks(t.Context(), "ls", "--database", dsn); code != exitUsage || !strings.Contains(errOut, "--tenant") {
		t.Errorf("%d %s", code, errOut)
	}
	says(run(exitFailed, "add", "https://example.com/"), "no such tenant: `waybill tenant ls`", "waybill tenant create")
	for _, none := range []string{"ana", platformWord, tenants.Platform.String()} {
		code, _, errOut := webhooks(t.Context(), "add", "https://example.com/", "--database", dsn, "--tenant", none)
		if code != exitUsage {
			t.Errorf("%s: %d %s", none, code, errOut)
		}
		says(errOut, "waybill tenant ls")
	}
	merchant, err := tenants.New(db, tenants.Config{}).Create(t.Context(), "Mercado Central")
	if err != nil {
		t.Fatal(err)
	}
	tenant = strings.ToUpper(merchant.ID.String()) // which is the same id
	says(run(exitOK, "add", "https://example.com/upper"), "endpoint ")
	tenant = merchant.ID.String()
	says(run(exitOK, "ls"), "https://example.com/upper")
	says(run(exitUsage, "add", "https://10.0.0.1/"), "not public")
	says(run(exitUsage, "add", "https://example.com/", "--types", "a..b"), "event type")
	says(run(exitUsage, "add", "https://example.com/", "--allow", "nonsense"), "127.0.0.0/8")

	hook := receive(t, db.Config().ConnString())
	var e webhookEndpoint
	if err := json.Unmarshal([]byte(run(exitOK, "add", hook.url, "--types", "logistica.orders.>", "--allow", "127.0.0.0/8", "--json")), &e); err != nil || e.Secret == "" {
		t.Fatal(err)
	}
	id := e.ID.String()
	says(run(exitOK, "ls"), id, "logistica.orders.>", "well")
	says(run(exitOK, "ping", id), "it answered 204")
	hook.answers(http.StatusInternalServerError)
	says(run(exitFailed, "ping", id), "500", "waybill webhook show")
	says(run(exitOK, "show", id), webhook.PingType, "delivered", "pending", "500")
	hook.answers(http.StatusNoContent)

	ev := webhook.Event{ID: event.NewID(), Tenant: tenant, Type: "logistica.orders.OrderCreated", Body: []byte(`{}`)}
	store := webhook.NewStore(db, nil, guard.New(guard.Config{}), webhook.StoreConfig{})
	if err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return store.Fan(t.Context(), tx, ev) }); err != nil {
		t.Fatal(err)
	}
	says(run(exitOK, "enable", id), "replay")
	until := func(state string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !strings.Contains(run(exitOK, "show", id, ev.ID.String()), state); time.Sleep(20 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not %s after a minute", state)
			}
		}
	}
	until("delivered")
	says(run(exitOK, "resend", id, ev.ID.String()), "on its way")
	says(run(exitOK, "replay", id, "--since", "1h"), "on their way again")
	says(run(exitOK, "replay", id, "--failed", "--json"), `"count": 0`)
	says(run(exitUsage, "replay", id), "--failed")
	says(run(exitFailed, "resend", id, event.NewID().String()), "waybill webhook ls")
	says(run(exitUsage, "show", "nonsense"), "waybill webhook ls")
	says(run(exitUsage, "show", id, "--state", "nonsense"), "pending")

	says(run(exitOK, "rotate", id, "--overlap", "1h"), "whsec_", "until")
	says(run(exitOK, "rotate", id, "--overlap", "0s"), "no more")
	says(run(exitOK, "disable", id, "--reason", "on holiday"), "no longer called")
	says(run(exitOK, "ls"), "disabled: on holiday")
	says(run(exitFailed, "ping", id), "waybill webhook enable")

	t.Setenv(config.EnvWebhookKeys, "")
	says(run(exitFailed, "rotate", id), "openssl rand", config.EnvWebhookKeys)
	t.Setenv(config.EnvWebhookKeys, "short")
	says(run(exitUsage, "ls"), "openssl rand")
	t.Setenv(config.EnvWebhookKeys, webhookTestKey)
	says(run(exitOK, "rm", id), "deleted")
	says(run(exitFailed, "show", id), "waybill webhook ls")
}

// hook is a receiver and the sender that calls it.
type hook struct {
	url string
	mu  sync.Mutex
	as  int
}

func (h *hook) answers(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.as = status
}

func receive(t *testing.T, dsn string) *hook {
	t.Helper()
	h := &hook{as: http.StatusNoContent}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		h.mu.Lock()
		defer h.mu.Unlock()
		w.WriteHeader(h.as)
	}))
	t.Cleanup(srv.Close)
	h.url = srv.URL
	db, err := pg.Open(t.Context(), dsn, pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	key, err := seal.ParseKey(webhookTestKey)
	if err != nil {
		t.Fatal(err)
	}
	box, err := seal.New(key)
	if err != nil {
		t.Fatal(err)
	}
	g := guard.New(guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}})
	s := webhook.NewSender(webhook.NewStore(db, box, g, webhook.StoreConfig{}), webhook.Config{Every: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h
}

func TestListenTellsWhatIsSignedFromWhatIsNot(t *testing.T) {
	k := sign.NewHMAC()
	t.Setenv(envWebhookSecret, k.Reveal())
	r, w := io.Pipe()
	type end struct {
		code int
		out  string
	}
	ended := make(chan end, 1)
	go func() {
		var o bytes.Buffer
		cmd := newWebhookListen()
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs([]string{"--listen", "127.0.0.1:0", "--count", "2"})
		cmd.SetOut(&o)
		cmd.SetErr(w)
		err := cmd.ExecuteContext(t.Context())
		_ = w.Close()
		code := exitOK
		if err != nil {
			code = exitFailed
		}
		ended <- end{code, o.String()}
	}()
	said := make([]byte, 200)
	n, err := r.Read(said)
	if err != nil {
		t.Fatal(err)
	}
	url := strings.TrimSpace(strings.TrimPrefix(string(said[:n]), "listening on "))
	for _, key := range []sign.Key{k, sign.NewHMAC()} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		sign.Headers(req.Header, []sign.Key{key}, "id-1", time.Now(), []byte(`{"a":1}`))
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if want := map[bool]int{true: 204, false: 401}[key.Reveal() == k.Reveal()]; resp.StatusCode != want {
			t.Errorf("%d, want %d", resp.StatusCode, want)
		}
	}
	got := <-ended
	if got.code != exitOK || !strings.Contains(got.out, "id-1  verified") || !strings.Contains(got.out, "REFUSED") || !strings.Contains(got.out, `{"a":1}`) {
		t.Errorf("%d %s", got.code, got.out)
	}
}
