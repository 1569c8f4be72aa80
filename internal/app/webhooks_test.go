package app

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/webhook"
)

func TestASenderWithoutAKeyIsRefusedWithHowToMakeOne(t *testing.T) {
	cfg := config.Default()
	cfg.MetricsListen = config.MetricsOff
	_, err := Run(t.Context(), cfg, slog.New(slog.DiscardHandler), RoleWebhook)
	if !errors.Is(err, webhook.ErrNoKey) || !strings.Contains(err.Error(), "openssl rand") || !strings.Contains(err.Error(), config.EnvWebhookKeys) {
		t.Errorf("%v", err)
	}
}

// The key that seals is the configured one; what the folder's sealed before opens
// all the same.
func TestTheFoldersKeyIsKeptForItsOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Dir = dir
	a := newApp(cfg, slog.New(slog.DiscardHandler))
	if keys, err := a.webhookKeys(); err != nil || len(keys) != 0 {
		t.Fatalf("%d keys without a folder of its own, %v", len(keys), err)
	}
	var err error
	if a.lock, err = lockDir(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = a.lock.release() })
	made, err := a.webhookKeys()
	if err != nil || len(made) != 1 {
		t.Fatalf("%d keys, %v", len(made), err)
	}
	path := filepath.Join(dir, webhookKeyFile)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	again, err := WebhookKey(dir)
	if err != nil || !bytes.Equal(again, made[0]) {
		t.Errorf("another key at the next look: %v", err)
	}
	a.cfg.Webhooks.Keys = []string{"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="}
	both, err := a.webhookKeys()
	if err != nil || len(both) != 2 || bytes.Equal(both[0], made[0]) || !bytes.Equal(both[1], made[0]) {
		t.Errorf("%d keys, %v", len(both), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := WebhookKey(dir); err == nil || !strings.Contains(err.Error(), "chmod 600") {
		t.Errorf("a key that others may read is taken: %v", err)
	}
}

func TestEndpointsHearOfAllEventsButPositions(t *testing.T) {
	topics := hooked(contracts.All())
	var types []string
	for _, ts := range topics {
		types = append(types, ts...)
	}
	if len(types) != len(contracts.All())-1 || slices.Contains(types, "logistica.couriers.CourierLocationUpdated") || !slices.Contains(topics["orders.events"], "logistica.orders.OrderCreated") {
		t.Errorf("%v", topics)
	}
}
