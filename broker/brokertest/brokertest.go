// Package brokertest gives tests a broker: an embedded one of their own, or
// the Kafka that WAYBILL_TEST_KAFKA names, which all tests then share.
package brokertest

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/embedded"
)

// Variable names a real Kafka, host:port, for tests to run on instead.
const Variable = "WAYBILL_TEST_KAFKA"

func address() string { return os.Getenv(Variable) }

// Kafka says whether tests run on a real Kafka.
func Kafka() bool { return address() != "" }

// Engine is a running broker under test.
type Engine struct {
	broker.Config
	Capabilities broker.Capabilities
}

// New is a fresh embedded broker that goes with the test, or the shared
// Kafka: name topics by Topic and groups by Group, for they outlive the test
// there.
func New(t testing.TB) *Engine {
	t.Helper()
	quiet := slog.New(slog.DiscardHandler)
	if Kafka() {
		return &Engine{
			Config:       broker.Config{Brokers: []string{address()}, Logger: quiet},
			Capabilities: broker.Kafka(),
		}
	}
	b, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", Logger: quiet})
	if err != nil {
		t.Fatalf("start embedded broker: %v", err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Errorf("stop embedded broker: %v", err)
		}
	})
	cfg := b.Client()
	cfg.Logger = quiet
	return &Engine{Config: cfg, Capabilities: b.Capabilities()}
}

// Client is a client that closes with the test.
func (e *Engine) Client(t testing.TB, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := e.Config.Client(opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// Topic is a topic name nobody else has.
func Topic(t testing.TB, name string) string {
	t.Helper()
	return unique(t, name)
}

// Group is a group name nobody else has.
func Group(t testing.TB, name string) string {
	t.Helper()
	return unique(t, name)
}

func unique(t testing.TB, name string) string {
	clean := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '-'
	}, t.Name())
	return fmt.Sprintf("%.80s.%s.%s", clean, name, strings.ReplaceAll(uuid.NewString(), "-", "")[:12])
}
