package app

import (
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/internal/config"
)

func TestAllPortsThatAreTakenAreNamedAtOnce(t *testing.T) {
	taken := func() net.Listener {
		var lc net.ListenConfig
		ln, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = ln.Close() })
		return ln
	}
	cfg := config.Default()
	cfg.Dir = t.TempDir()
	cfg.Listen, cfg.KafkaListen, cfg.RegistryListen = taken().Addr().String(), taken().Addr().String(), taken().Addr().String()
	cfg.PostgresPort = taken().Addr().(*net.TCPAddr).Port
	a, err := Up(t.Context(), cfg, slog.New(slog.DiscardHandler))
	if err == nil {
		t.Fatal(a.Stop(t.Context()))
	}
	for _, want := range []string{"--listen", "--kafka-listen", "--registry-listen", "--postgres-port", cfg.Listen, cfg.KafkaListen, cfg.RegistryListen} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in: %v", want, err)
		}
	}
	// What is another's is not listened for.
	cfg.Brokers, cfg.RegistryURL, cfg.DatabaseURL = []string{"kafka.example:9092"}, "http://registry.example", "postgres://db.example"
	err = newApp(cfg, slog.New(slog.DiscardHandler)).portsFree(t.Context())
	if err == nil || strings.Contains(err.Error(), "--kafka-listen") || strings.Contains(err.Error(), "--registry-listen") || strings.Contains(err.Error(), "--postgres-port") {
		t.Errorf("%v", err)
	}
}
