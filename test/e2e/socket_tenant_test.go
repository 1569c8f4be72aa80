package e2e

import (
	"net/http"
	"testing"

	"github.com/coder/websocket"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/push"
	"github.com/waybillhq/waybill/test/proc"
)

// However a WebSocket is asked for, its key alone says whose events it carries.
func TestAWebSocketCarriesItsKeysTenantHoweverItIsAskedFor(t *testing.T) {
	w := proc.Up(t)
	theirs := merchant(t, w, "Outra Padaria")
	var me struct{ ID string }
	ask(t, w, w.DemoKey, http.MethodGet, "/v1/me", "", http.StatusOK, &me)
	mine := talk(t, w, w.DemoKey, "/v1/events", "")
	ours := create(t, w)
	if got := mine.next(); got.Data.Subject != ours.ID {
		t.Fatalf("its own merchant hears of %s", got.Data.Subject)
	}
	foreign := map[string]*stream{"with the cursor of another": talk(t, w, theirs, "/v1/events", mine.last)}
	for _, query := range []string{"tenant=" + me.ID, "channel=tenant/" + me.ID, "topic=tenant/" + me.ID, "token=" + w.DemoKey} {
		foreign["with "+query] = talk(t, w, theirs, "/v1/events?"+query+"", "")
	}
	foreign["with two keys, theirs first"] = dialled(t, w, nil, push.Subprotocol, "bearer."+theirs, "bearer."+w.DemoKey)
	foreign["with a key in the head and another as protocol"] = dialled(t, w,
		http.Header{"Authorization": {"Bearer " + theirs}}, push.Subprotocol, "bearer."+w.DemoKey)
	create(t, w)
	mine.next() // the hub has handed it out: were it anybody else's too, it would come first
	var own order
	ask(t, w, theirs, http.MethodPost, "/v1/orders", proc.Order, http.StatusCreated, &own)
	for how, s := range foreign {
		if got := s.next(); got.Data.Subject != own.ID {
			t.Errorf("%s: hears of %s", how, got.Data.Subject)
		}
	}
}

// dialled is a WebSocket that named protocols, and is ready.
func dialled(t *testing.T, w *proc.Waybill, header http.Header, protocols ...string) *stream {
	t.Helper()
	ws, _, err := websocket.Dial(t.Context(), w.HTTP+"/v1/events", &websocket.DialOptions{Subprotocols: protocols, HTTPHeader: header})
	if err != nil {
		t.Fatal(err)
	}
	s := &stream{t: t, messages: make(chan message, 100), close: func() { _ = ws.CloseNow() }}
	t.Cleanup(s.close)
	go s.listen(ws)
	if m := s.next(); m.Event != push.EventReady {
		t.Fatalf("it opens with %+v", m)
	}
	return s
}

func TestAWebSocketIsRefusedAsAnyRequestIs(t *testing.T) {
	w := proc.Up(t)
	pool, err := pgxpool.New(t.Context(), w.Database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	directory := tenants.New(pool, tenants.Config{})
	courier, _, err := directory.IssueCourierKey(t.Context(), event.NewID())
	if err != nil {
		t.Fatal(err)
	}
	admin, _, err := directory.IssueKey(t.Context(), tenants.Platform, tenants.Admin)
	if err != nil {
		t.Fatal(err)
	}
	o := create(t, w)
	own := w.DemoKey
	for _, c := range []struct {
		how, path string
		protocols []string
		want      int
	}{
		{"without a key", "/v1/events", nil, http.StatusUnauthorized},
		{"with a key that is none", "/v1/events", []string{"bearer." + own + "x"}, http.StatusUnauthorized},
		{"with a key nobody has", "/v1/events", []string{"bearer." + tenants.NewKey(event.NewID())}, http.StatusUnauthorized},
		{"with a key under another name", "/v1/events", []string{"basic." + own, own}, http.StatusUnauthorized},
		{"with a key in the query", "/v1/events?authorization=Bearer%20" + own + "&key=" + own, nil, http.StatusUnauthorized},
		{"with a key in the cursor", "/v1/events?last_event_id=bearer." + own, nil, http.StatusUnauthorized},
		{"with a courier's key", "/v1/events", []string{"bearer." + courier}, http.StatusForbidden},
		{"with an administrator's key", "/v1/events", []string{"bearer." + admin}, http.StatusForbidden},
		{"a courier's stream with a merchant's key", "/v1/courier/events", []string{"bearer." + own}, http.StatusForbidden},
		{"an order's by its id", "/track/" + o.ID + "/events", nil, http.StatusNotFound},
		{"an order's by its id, with its merchant's key", "/track/" + o.ID + "/events", []string{"bearer." + own}, http.StatusNotFound},
		{"an order's by half a token", "/track/" + o.Token[1:] + "/events", nil, http.StatusNotFound},
	} {
		if got := refused(t, w.HTTP+c.path, append([]string{push.Subprotocol}, c.protocols...)...); got != c.want {
			t.Errorf("%s: %d, want %d", c.how, got, c.want)
		}
	}
}
