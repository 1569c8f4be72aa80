package webhook

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/webhook/seal"
)

func TestPatternsMatchWords(t *testing.T) {
	for pattern, types := range map[string][2]string{ // matched, not matched
		"orders.>":       {"orders.a orders.a.b", "orders order.a ordersx.a x.orders.a"},
		"orders.created": {"orders.created", "orders.created.x orders Orders.created"},
		"*.created":      {"orders.created x.created", "created a.b.created orders.createdx"},
		"a.*.c":          {"a.b.c", "a.c a.b.b.c a.b.d"},
		"*.>":            {"a.b a.b.c", "a"},
		">":              {"a a.b", ""},
	} {
		for _, typ := range strings.Fields(types[0]) {
			if !wants([]string{"nothing", pattern}, typ) {
				t.Errorf("%s does not match %s", pattern, typ)
			}
		}
		for _, typ := range strings.Split(types[1], " ") {
			if wants([]string{pattern}, typ) {
				t.Errorf("%s matches %q", pattern, typ)
			}
		}
	}
	if !wants(nil, "anything") {
		t.Error("no patterns match nothing")
	}
	for _, bad := range []string{"", ".", "a.", ".a", "a.>.b", "a*", "a.b*", "a.>>", "a\nb", strings.Repeat("a", 201)} {
		if err := checkTypes([]string{bad}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if err := checkTypes(make([]string, 101)); !errors.Is(err, ErrInvalid) {
		t.Error(err)
	}
}

func TestEndpointsAreTheirTenantsOwn(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	e := w.create("ana", "https://example.com/hook", "orders.>")
	got, err := w.store.Get(ctx, "ana", e.ID)
	if err != nil || got.URL != e.URL || got.State != Enabled || got.Algorithm != HMAC || len(got.Types) != 1 {
		t.Errorf("%+v, %v", got, err)
	}
	if all, err := w.store.List(ctx, "rui"); err != nil || len(all) != 0 {
		t.Errorf("%v, %v", all, err)
	}
	_, rotated := w.store.Rotate(ctx, "rui", e.ID, 0)
	_, updated := w.store.Update(ctx, "rui", e.ID, Settings{URL: "https://example.com"})
	_, secrets := w.store.Secrets(ctx, "rui", e.ID)
	_, gotten := w.store.Get(ctx, "rui", e.ID)
	_, listed := w.store.Deliveries(ctx, "rui", e.ID, DeliveryFilter{})
	_, pinged := w.store.Ping(ctx, "rui", e.ID)
	_, replayed := w.store.Replay(ctx, "rui", e.ID, Replay{})
	for what, err := range map[string]error{
		"get": gotten, "update": updated, "rotate": rotated, "secrets": secrets, "deliveries": listed, "ping": pinged, "replay": replayed,
		"enable": w.store.Enable(ctx, "rui", e.ID), "disable": w.store.Disable(ctx, "rui", e.ID, ""), "delete": w.store.Delete(ctx, "rui", e.ID),
		"resend": w.store.Resend(ctx, "rui", e.ID, event.NewID()),
	} {
		if !errors.Is(err, ErrNotFound) {
			t.Errorf("%s of another tenant's: %v", what, err)
		}
	}
	// What a statement forgot, the server refuses.
	err = pg.InTenant(ctx, w.db, "rui", func(tx pgx.Tx) error {
		for _, table := range []string{"endpoints", "secrets", "lanes", "due", "messages", "deliveries"} {
			var n int
			if err := tx.QueryRow(ctx, `SELECT count(*) FROM webhook.`+table).Scan(&n); err != nil || n != 0 {
				t.Errorf("%s: %d rows of another tenant, %v", table, n, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	if err := w.store.Delete(ctx, "ana", e.ID); err != nil {
		t.Error(err)
	}
	if _, err := w.store.Get(ctx, "ana", e.ID); !errors.Is(err, ErrNotFound) {
		t.Error(err)
	}
}

func TestPartitionsAreWalledToo(t *testing.T) {
	w := newWorld(t)
	w.create("ana", "https://example.com/")
	w.fan(anEvent("ana", "a"))
	day := time.Now().UTC().Format("20060102")
	for _, table := range []string{"messages_" + day, "deliveries_" + day} {
		var n int
		if err := w.db.QueryRow(t.Context(), `SELECT count(*) FROM webhook.`+table).Scan(&n); err != nil || n != 0 {
			t.Errorf("%s shows %d rows to nobody, %v", table, n, err)
		}
		if n := w.count(`SELECT count(*) FROM webhook.` + table); n != 1 {
			t.Errorf("%s has %d rows", table, n)
		}
	}
}

func TestWhatCannotBeCalledIsRefused(t *testing.T) {
	w := newWorld(t)
	for _, in := range []Settings{
		{URL: ""},
		{URL: "https://10.0.0.1/"},
		{URL: "https://169.254.169.254/"},
		{URL: "https://example.com", Types: []string{"a..b"}},
		{URL: "https://example.com", Description: "two\nlines"},
		{URL: "https://example.com", Algorithm: "md5"},
	} {
		if _, err := w.store.Create(t.Context(), "ana", in); !errors.Is(err, ErrInvalid) {
			t.Errorf("%+v: %v", in, err)
		}
	}
	for range 5 {
		w.create("ana", "https://example.com/")
	}
	if _, err := w.store.Create(t.Context(), "ana", Settings{URL: "https://example.com/"}); !errors.Is(err, ErrTooMany) {
		t.Error(err)
	}
	w.create("rui", "https://example.com/")
}

func TestSecretsAreSealedAndRotateWithOverlap(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	e, err := w.store.Create(ctx, "ana", Settings{URL: "https://example.com/", Algorithm: Ed25519})
	w.must(err)
	first := w.key(e)
	if !strings.HasPrefix(first, "whpk_") {
		t.Errorf("%.6s is shown of a pair", first)
	}
	if n := w.count(`SELECT count(*) FROM webhook.secrets WHERE position('whs'::bytea IN sealed) > 0`); n != 0 {
		t.Error("the secret is in the database to be read")
	}
	two, err := w.store.Rotate(ctx, "ana", e.ID, time.Hour)
	if err != nil || len(two) != 2 || two[0].ExpiresAt != nil || two[1].Key != first || two[1].ExpiresAt == nil {
		t.Fatalf("%d secrets, %v", len(two), err)
	}
	for range 2 {
		_, err = w.store.Rotate(ctx, "ana", e.ID, 2*time.Hour)
		w.must(err)
	}
	if _, err := w.store.Rotate(ctx, "ana", e.ID, time.Hour); !errors.Is(err, ErrInvalid) {
		t.Errorf("a fifth: %v", err)
	}
	one, err := w.store.Rotate(ctx, "ana", e.ID, 0)
	if err != nil || len(one) != 1 || one[0].Key == first {
		t.Errorf("%d secrets, %v: the leaked ones go at once", len(one), err)
	}
	for _, overlap := range []time.Duration{-1, maxOverlap + 1} {
		if _, err := w.store.Rotate(ctx, "ana", e.ID, overlap); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", overlap, err)
		}
	}
	// A row that is moved to another tenant opens nothing.
	other := w.create("rui", "https://example.com/")
	w.must(asOperator(ctx, w.db, func(tx pgx.Tx) error {
		_, err := tx.Exec(ctx, `UPDATE webhook.secrets t SET sealed = s.sealed FROM webhook.secrets s WHERE t.endpoint = $1 AND s.endpoint = $2`, other.ID, e.ID)
		return err
	}))
	if _, err := w.store.Secrets(ctx, "rui", other.ID); !errors.Is(err, seal.ErrSealed) {
		t.Error(err)
	}
}
