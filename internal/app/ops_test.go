package app

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// startBroker runs `waybill broker`.
func startBroker(t *testing.T, metrics string) *App {
	t.Helper()
	cfg := config.Default()
	cfg.Dir, cfg.KafkaListen, cfg.RegistryListen, cfg.MetricsListen = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0", metrics
	a, err := Broker(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	stopLater(t, a)
	return a
}

func stopLater(t *testing.T, a *App) {
	t.Cleanup(func() {
		if err := a.Stop(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// rolesOn is a configuration of roles on another process's broker.
func rolesOn(t *testing.T, b *App) config.Config {
	t.Helper()
	at := b.Addresses()
	cfg := config.Default()
	cfg.DatabaseURL, cfg.Brokers, cfg.RegistryURL, cfg.Listen = pgtest.New(t), []string{at.Kafka}, at.Registry, "127.0.0.1:0"
	return cfg
}

func get(t *testing.T, url string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

func TestEveryProcessServesMetricsAndHealth(t *testing.T) {
	b := startBroker(t, "")
	r, err := Run(t.Context(), rolesOn(t, b), slog.New(slog.DiscardHandler), RoleRelay)
	if err != nil {
		t.Fatal(err)
	}
	stopLater(t, r)
	if b.OpsAddress() == r.OpsAddress() {
		t.Fatal("two processes at one address")
	}
	for a, want := range map[*App]string{b: "go_goroutines", r: "waybill_outbox_stopped_partitions"} {
		at := "http://" + a.OpsAddress()
		if code, text := get(t, at+"/metrics"); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("/metrics without %s: %d", want, code)
		}
		for _, path := range []string{"/healthz", "/readyz"} {
			if code, text := get(t, at+path); code != http.StatusOK {
				t.Errorf("%s: %d %s", path, code, text)
			}
		}
	}
}

func TestAMetricsAddressThatWasAskedForIsNotChangedForAnother(t *testing.T) {
	var lc net.ListenConfig
	taken, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	cfg := config.Default()
	cfg.Dir, cfg.KafkaListen, cfg.RegistryListen, cfg.MetricsListen = t.TempDir(), "127.0.0.1:0", "127.0.0.1:0", taken.Addr().String()
	if _, err := Broker(t.Context(), cfg, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), "--metrics-listen") {
		t.Errorf("%v, want it to name --metrics-listen", err)
	}
	if off := startBroker(t, config.MetricsOff); off.OpsAddress() != "" {
		t.Error("switched off, and served at", off.OpsAddress())
	}
}

// What a process that starts can do must not look as if it could.
func TestAProcessThatStartsIsNotReady(t *testing.T) {
	a := newApp(config.Config{MetricsListen: "127.0.0.1:0"}, slog.New(slog.DiscardHandler))
	if err := a.startOps(t.Context(), a.ask("postgres", a.pingDatabase)); err != nil {
		t.Fatal(err)
	}
	stopLater(t, a)
	if code, _ := get(t, "http://"+a.OpsAddress()+"/readyz"); code != http.StatusServiceUnavailable {
		t.Errorf("/readyz: %d", code)
	}
	if code, _ := get(t, "http://"+a.OpsAddress()+"/healthz"); code != http.StatusOK {
		t.Errorf("/healthz: %d", code)
	}
}

// The broker is asked what it can do: one that runs in another process is not a
// Kafka because it was named.
func TestRolesOnAnotherProcessesBrokerAskNoMoreThanItCan(t *testing.T) {
	b := startBroker(t, config.MetricsOff)
	cfg := rolesOn(t, b)
	once := cfg
	once.Outbox.ExactlyOnce = true
	if _, err := Run(t.Context(), once, slog.New(slog.DiscardHandler), RoleRelay); err == nil || !strings.Contains(err.Error(), "outbox.exactly_once needs a broker") {
		t.Errorf("exactly once: %v", err)
	}
	a, err := Run(t.Context(), cfg, slog.New(slog.DiscardHandler), RoleCDC)
	if err != nil {
		t.Fatal(err)
	}
	stopLater(t, a)
	cl, err := a.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	name := orders.Changes()[0].Topic
	deadline := time.Now().Add(time.Minute)
	for {
		topics, err := broker.ListTopics(t.Context(), cl, name)
		if err == nil && len(topics) == 1 && topics[0].Error == "" {
			if topics[0].Cleanup != "delete" {
				text, _ := json.Marshal(topics[0])
				t.Errorf("%s", text)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s is not made: %v", name, err)
		}
		select {
		case <-t.Context().Done():
			return
		case <-time.After(20 * time.Millisecond):
		}
	}
}
