package up

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/test/proc"
)

// With nobody to carry events away, orders are refused at the budget, also
// after the database came back from a crash, and taken again without anybody's
// doing once a relay has caught up.
func TestOrdersAreRefusedWhileTheOutboxIsFull(t *testing.T) {
	if brokertest.Kafka() {
		t.Skip("needs a registry that outlives `waybill up`")
	}
	cfg := local.Config{Dir: pgtest.Dir(t)}
	db, err := local.Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = db.Stop(context.Background()) }()
	cfg.Port = db.Port()
	file := filepath.Join(t.TempDir(), "waybill.yaml")
	if err := os.WriteFile(file, []byte("outbox: {max_backlog: 20, max_wal: 1GiB}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := proc.Broker(t)
	w := proc.New(t)
	w.Env = append(w.Env, "WAYBILL_DATABASE_URL="+db.DSN(), "WAYBILL_REGISTRY_URL="+b.Registry,
		"WAYBILL_KAFKA_BROKERS="+b.Kafka, "WAYBILL_CONFIG="+file)
	w.Start() // makes the demonstration's key
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	run := func(role string, args ...string) {
		t.Helper()
		r := proc.Role(t, role, args...)
		r.Env = w.Env
		if err := r.Launch(); err != nil {
			t.Fatal(err)
		}
	}
	run("api", "--listen", strings.TrimPrefix(w.HTTP, "http://"))
	ready(t, w)
	taken := placeUntil(t, w, http.StatusTooManyRequests)
	if taken < 20 {
		t.Errorf("refused after %d orders", taken)
	}
	pgtest.Crash(t, db)
	if db, err = local.Start(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	ready(t, w)
	if more := placeUntil(t, w, http.StatusTooManyRequests); more > 0 {
		t.Errorf("%d orders were taken after the database's crash", more)
	}
	run("relay")
	placeUntil(t, w, http.StatusCreated)
}

// placeUntil places orders until one is answered with status, and tells how
// many were taken before.
func placeUntil(t *testing.T, w *proc.Waybill, status int) (taken int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		got, body, err := w.Request(ctx, http.MethodPost, "/v1/orders", proc.Order)
		switch {
		case ctx.Err() != nil:
			t.Fatalf("never answered with %d, but with %d %s %v", status, got, body, err)
		case err == nil && got == status:
			return taken
		case err == nil && got == http.StatusCreated:
			taken++
		case err == nil && got == http.StatusTooManyRequests && !strings.Contains(string(body), "outbox-full"):
			t.Fatalf("%s", body)
		default: // an answer meant for later
			<-time.After(5 * time.Millisecond)
		}
	}
}
