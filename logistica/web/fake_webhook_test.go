package web

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/test/browser"
	"github.com/waybillhq/waybill/webhook"
	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/seal"
	"github.com/waybillhq/waybill/webhook/server"
	"github.com/waybillhq/waybill/webhook/sign"
)

const otherKey = "wb_test_of_another_store"

// hooks is the webhooks of two stores, whole: database, sender and HTTP. Only who
// is called is a stand-in, and who a key is of.
type hooks struct {
	t        *testing.T
	url      string // of the pages
	receiver string // is called
	store    *webhook.Store
	fan      func(tenant string, types ...string) []uuid.UUID

	mu     sync.Mutex
	answer int // what the receiver answers; 200 if zero
	calls  []call
}

type call struct {
	header http.Header
	body   []byte
}

func serveHooks(t *testing.T) *hooks {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.Migrated(t, incident.Migration(), webhook.Migration()), pg.Config{})
	must(t, err)
	t.Cleanup(db.Close)
	must(t, webhook.EnsureDays(t.Context(), db))
	box, err := seal.New(bytes.Repeat([]byte{1}, seal.KeySize))
	must(t, err)
	h := &hooks{t: t, store: webhook.NewStore(db, box, guard.New(guard.Config{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}), webhook.StoreConfig{})}
	// A window in which no second attempt fits: what fails is given up at once.
	sender := webhook.NewSender(h.store, webhook.Config{Every: 10 * time.Millisecond, Window: time.Millisecond, Logger: slog.New(slog.DiscardHandler)})
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- sender.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		must(t, <-done)
	})
	h.fan = func(tenant string, types ...string) (ids []uuid.UUID) {
		t.Helper()
		var events []webhook.Event
		for n, typ := range types {
			ids = append(ids, event.NewID())
			events = append(events, webhook.Event{ID: ids[n], Tenant: tenant, Type: typ, Body: fmt.Appendf(nil, `{"type":%q,"data":{"order":%d}}`, typ, n)})
		}
		must(t, pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return h.store.Fan(t.Context(), tx, events...) }))
		sender.Wake()
		return ids
	}
	h.receiver = serveAll(t, http.HandlerFunc(h.receive)) + "/hook"
	h.url = serveAll(t, h.pages(sender.Wake))
	return h
}

func serveAll(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

func (h *hooks) pages(wake func()) http.Handler {
	tenants := map[string]string{"Bearer " + testKey: "ana", "Bearer " + otherKey: "rui"}
	api, err := server.New(server.Deps{Store: h.store, Wake: wake, Logger: slog.New(slog.DiscardHandler), Authenticate: func(_ context.Context, key string) (string, error) {
		if tenant := tenants["Bearer "+key]; tenant != "" {
			return tenant, nil
		}
		return "", server.ErrKey
	}}, server.Config{})
	must(h.t, err)
	mux := http.NewServeMux()
	must(h.t, Register(mux))
	mux.Handle(server.Prefix+"/", api)
	mux.HandleFunc("GET /v1/me", func(w http.ResponseWriter, r *http.Request) {
		tenant := tenants[r.Header.Get("Authorization")]
		answer(w, 200, map[string]any{"id": tenant, "name": "Cantina da " + tenant})
	})
	mux.HandleFunc("GET /unit.html", unitPage)
	return mux
}

func (h *hooks) receive(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, call{r.Header.Clone(), body})
	if h.answer != 0 {
		w.WriteHeader(h.answer)
		_, _ = fmt.Fprint(w, "the receiver's own words")
	}
}

func (h *hooks) answers(status int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.answer = status
}

// verified is whether the last call bears a signature of secret.
func (h *hooks) verified(secret string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	v, err := sign.NewVerifier(secret)
	if err != nil {
		return err
	}
	last := h.calls[len(h.calls)-1]
	return v.Verify(last.header, last.body)
}

// create is an endpoint that is there before the page is opened.
func (h *hooks) create(tenant, description string, types ...string) webhook.Endpoint {
	h.t.Helper()
	e, err := h.store.Create(h.t.Context(), tenant, webhook.Settings{URL: h.receiver, Description: description, Types: types})
	must(h.t, err)
	return e
}

// settled waits until nothing is on its way to an endpoint.
func (h *hooks) settled(tenant string, endpoint uuid.UUID) {
	h.t.Helper()
	until(h.t, func() bool {
		b, err := h.store.Backlog(h.t.Context(), tenant, endpoint)
		return err == nil && b.Pending == 0
	})
}

func until(t *testing.T, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(browser.Patience); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it does not come about")
		}
	}
}

// lookAgain has the page read at once what it would read in some seconds.
func lookAgain(ctx context.Context, t *testing.T) {
	t.Helper()
	browser.Eval[bool](ctx, t, `document.dispatchEvent(new Event("visibilitychange"))`)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func openHooks(t *testing.T, h *hooks, fragment string) context.Context {
	t.Helper()
	ctx := browser.New(t)
	browser.As(ctx, t, browser.Look{Width: 1280, Height: 860, Locale: "en-US", Zone: "America/Sao_Paulo"})
	browser.Open(ctx, t, h.url+"/unit.html")
	browser.Eval[bool](ctx, t, `sessionStorage.setItem("waybill.key", "`+testKey+`"), true`) // as the desk's link does: the tab has the key
	browser.Open(ctx, t, h.url+"/webhooks"+fragment)
	browser.Until[bool](ctx, t, `document.querySelector("[data-heading]") !== null`)
	return ctx
}
