package server

import (
	"context"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/webhook"
	"github.com/waybillhq/waybill/webhook/guard"
)

// A server that was given no key says whose turn it is, and keeps nothing.
func TestWithoutAKeySecretsAreNotPromised(t *testing.T) {
	db, err := pg.Open(t.Context(), pgtest.New(t), pg.Config{})
	must(t, err)
	t.Cleanup(db.Close)
	must(t, pg.Migrate(t.Context(), db, incident.Migration(), webhook.Migration()))
	h, err := New(Deps{
		Store: webhook.NewStore(db, nil, guard.New(guard.Config{}), webhook.StoreConfig{}), Logger: slog.New(slog.DiscardHandler),
		Authenticate: func(context.Context, string) (string, error) { return "ana", nil },
	}, Config{})
	must(t, err)
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	c := &client{t, web.URL, "ana"}
	if p := c.call("POST", "/endpoints", object{"url": "https://example.com/"}, 503); !strings.Contains(p["detail"].(string), "key") {
		t.Errorf("%v", p)
	}
	if all := c.call("GET", "/endpoints", nil, 200)["endpoints"].([]any); len(all) != 0 {
		t.Errorf("%v", all)
	}
}
