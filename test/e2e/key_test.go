package e2e

import (
	"net/http"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/test/proc"
)

// What a key opened goes with it, by whichever way it was opened: nobody goes on
// listening by a key that was taken away, or past the end of one that was
// rotated. The merchant's other streams go on.
func TestStreamsEndWithTheirKey(t *testing.T) {
	w := proc.Up(t)
	pool, err := pgxpool.New(t.Context(), w.Database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	directory := tenants.New(pool, tenants.Config{})
	admin, _, err := directory.IssueKey(t.Context(), tenants.Platform, tenants.Admin)
	if err != nil {
		t.Fatal(err)
	}
	var me struct{ ID string }
	ask(t, w, w.DemoKey, http.MethodGet, "/v1/me", "", http.StatusOK, &me)
	type key struct {
		Key string
		ID  string
	}
	keys := "/v1/admin/tenants/" + me.ID + "/keys"
	issue := func() (k key) {
		ask(t, w, admin, http.MethodPost, keys, `{"scope":"merchant"}`, http.StatusCreated, &k)
		return k
	}
	o := create(t, w)
	stays := []*stream{follow(t, w, w.DemoKey, "/v1/events", ""), follow(t, w, "", "/track/"+o.Token+"/events", "")}
	for name, open := range ways {
		revoked, rotated := issue(), issue()
		ends := []*stream{open(t, w, revoked.Key, "/v1/events", ""), open(t, w, revoked.Key, "/v1/events", "")}
		ask(t, w, admin, http.MethodDelete, keys+"/"+revoked.ID, "", http.StatusNoContent, nil)
		for _, s := range ends {
			s.over()
		}
		later := open(t, w, rotated.Key, "/v1/events", "")
		var next key
		ask(t, w, admin, http.MethodPost, keys+"/"+rotated.ID+"/rotate", `{"grace":"2s"}`, http.StatusCreated, &next)
		later.over()
		again := open(t, w, next.Key, "/v1/events", later.last) // where the old one was let go
		moved := create(t, w)
		if got := again.next(); got.Data.Subject != moved.ID {
			t.Errorf("%s: the next key hears of %s", name, got.Data.Subject)
		}
		for stays[0].next().Data.Subject != moved.ID { // of the orders before it may be more to hear
		}
		eventually(t, "the rotated key opens nothing any more", func() bool {
			return status(t, w, rotated.Key, http.MethodGet, "/v1/me") == http.StatusUnauthorized
		})
		if code := status(t, w, revoked.Key, http.MethodGet, "/v1/events"); code != http.StatusUnauthorized {
			t.Errorf("%s: the revoked key opens a stream: %d", name, code)
		}
	}
	move(t, w, o.ID, "ASSIGNING")
	for _, s := range stays {
		s.next()
	}
}
