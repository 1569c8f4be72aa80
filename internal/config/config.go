// Package config is how an operator configures Waybill: flags, environment and
// a file, in that order of precedence. Only the command line and the wiring
// import it; every other package has a Config of its own.
package config

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"github.com/waybillhq/waybill/broker"
)

// Environment variables that are read.
const (
	EnvDatabaseURL = "WAYBILL_DATABASE_URL"
	EnvBrokers     = "WAYBILL_KAFKA_BROKERS"
	EnvRegistryURL = "WAYBILL_REGISTRY_URL"
	EnvFile        = "WAYBILL_CONFIG"
	EnvRelay       = "WAYBILL_OUTBOX_RELAY"
	EnvExactlyOnce = "WAYBILL_OUTBOX_EXACTLY_ONCE"
	EnvMetrics     = "WAYBILL_METRICS_LISTEN"
)

// Words of MetricsListen.
const (
	DefaultMetricsListen = "127.0.0.1:9464"
	MetricsOff           = "off"
)

// Config is everything that may be set. An empty engine (DatabaseURL, Brokers,
// RegistryURL) means: start one here.
type Config struct {
	Dir            string
	Listen         string
	KafkaListen    string
	KafkaAdvertise string
	RegistryListen string
	PostgresPort   int
	// MetricsListen is where a process without the API serves metrics and
	// health: HOST:PORT, or MetricsOff. Empty is DefaultMetricsListen, or the next
	// port that is free.
	MetricsListen  string
	DatabaseURL    string
	Brokers        []string
	RegistryURL    string
	KafkaTLS       *tls.Config
	KafkaSASL      *broker.SASL
	RegistryUser   string
	RegistrySecret string
	RegistryBearer string
	OperatorKey    string // of the endpoints for operators; empty: they answer on the machine itself alone
	API            API
	Outbox         Outbox
	CDC            CDC
	Queue          Queue
	Webhooks       Webhooks
	Lag            Lag
	Alerts         Alerts
	Scale          Scale
	Analytics      Analytics
	Sim            Sim // of `waybill up` alone
}

// Sim is the simulator beside the product; see package logistica/sim for what
// its numbers mean and for their defaults.
type Sim struct {
	On       bool
	Speed    float64
	Rate     float64
	Couriers int
}

// Outbox is how events leave the database.
type Outbox struct {
	// Relay is how the relay reads: wal, poll or message; wal if empty.
	Relay string `yaml:"relay"`
	// ExactlyOnce publishes in Kafka transactions.
	ExactlyOnce bool `yaml:"exactly_once"`
	// MaxBacklog is how many events may wait to be published before writers
	// are refused; a million if zero.
	MaxBacklog int64 `yaml:"max_backlog"`
	// MaxWAL is how much WAL the server may keep for the relay before writers
	// are refused; if zero, half of its max_slot_wal_keep_size, else 8 GiB.
	MaxWAL Size `yaml:"max_wal"`
	// KeepDays is how many days published events stay in the database; three if
	// left out.
	KeepDays *int `yaml:"keep_days"`
	// ArchiveDir is the folder they then go to; `waybill up` has one in its own.
	ArchiveDir string `yaml:"archive_dir"`
	// Archive false lets them go without a copy.
	Archive *bool `yaml:"archive"`
}

// Default is what `waybill up` uses when nothing is said.
func Default() Config {
	return Config{
		Dir: ".waybill", Listen: "127.0.0.1:8080", KafkaListen: "127.0.0.1:9092",
		RegistryListen: "127.0.0.1:8081", PostgresPort: 5433,
	}
}

// FromEnvironment adds what the file and the environment say to c. Flags are
// the caller's to apply afterwards.
func (c *Config) FromEnvironment() error {
	if path := os.Getenv(EnvFile); path != "" {
		if err := c.fromFile(path); err != nil {
			return fmt.Errorf("%s=%s: %w", EnvFile, path, err)
		}
	}
	if v := os.Getenv(EnvDatabaseURL); v != "" {
		c.DatabaseURL = v
	}
	if v := os.Getenv(EnvBrokers); v != "" {
		c.Brokers = split(v)
	}
	if v := os.Getenv(EnvRegistryURL); v != "" {
		c.RegistryURL = v
	}
	if v := os.Getenv(EnvOperatorKey); v != "" {
		c.OperatorKey = v
	}
	if v := os.Getenv(EnvWebhookKeys); v != "" {
		c.Webhooks.Keys = split(v)
	}
	if v := os.Getenv(EnvWebhookAllow); v != "" {
		c.Webhooks.Allow = split(v)
	}
	if v := os.Getenv(EnvClickHouse); v != "" {
		c.Analytics.ClickHouse.URL = v
	}
	if v := os.Getenv(EnvMetrics); v != "" {
		c.MetricsListen = v
	}
	if v := os.Getenv(EnvRelay); v != "" {
		if !relayMode(v) {
			return fmt.Errorf("%s=%q: want %s", EnvRelay, v, relayModes)
		}
		c.Outbox.Relay = v
	}
	if v := os.Getenv(EnvExactlyOnce); v != "" {
		on, err := strconv.ParseBool(v)
		if err != nil {
			return fmt.Errorf("%s=%q: want true or false", EnvExactlyOnce, v)
		}
		c.Outbox.ExactlyOnce = on
	}
	return nil
}

// relayModes are the words for how the relay reads.
const relayModes = "wal, poll or message"

func relayMode(word string) bool {
	switch word {
	case "", "wal", "poll", "message":
		return true
	}
	return false
}

func (o *Outbox) checkRelay() error {
	if !relayMode(o.Relay) {
		return fmt.Errorf("outbox.relay %q: want %s", o.Relay, relayModes)
	}
	return nil
}

func split(list string) []string {
	var out []string
	for v := range strings.SplitSeq(list, ",") {
		if v = strings.TrimSpace(v); v != "" {
			out = append(out, v)
		}
	}
	return out
}

// Check refuses addresses that cannot be meant, naming the flag.
func (c *Config) Check() error {
	var errs []error
	for _, a := range []struct{ flag, addr string }{
		{"--listen", c.Listen},
		{"--kafka-listen", c.KafkaListen},
		{"--kafka-advertise", c.KafkaAdvertise},
		{"--registry-listen", c.RegistryListen},
		{"--metrics-listen", c.MetricsListen},
	} {
		if a.flag == "--kafka-advertise" && a.addr == "" || a.flag == "--metrics-listen" && (a.addr == "" || a.addr == MetricsOff) {
			continue
		}
		if err := checkAddress(a.addr); err != nil {
			errs = append(errs, fmt.Errorf("%s %q: %w", a.flag, a.addr, err))
		}
	}
	if c.PostgresPort < 0 || c.PostgresPort > 65535 {
		errs = append(errs, fmt.Errorf("--postgres-port %d: want 1 to 65535, or 0 for any free one", c.PostgresPort))
	}
	errs = append(errs, c.Outbox.checkRelay())
	if c.Outbox.MaxBacklog < 0 {
		errs = append(errs, fmt.Errorf("outbox.max_backlog %d: want a number of events, or leave it out for a million", c.Outbox.MaxBacklog))
	}
	if n := c.Outbox.MaxWAL; n > 0 && n < 1<<20 {
		errs = append(errs, fmt.Errorf("outbox.max_wal of %d bytes: want at least 1MiB; a size has a unit, as in 8GiB", n))
	}
	errs = append(errs, c.Outbox.CheckRetention())
	errs = append(errs, c.CDC.check(), c.Queue.check(), c.Webhooks.check(), c.API.check(), c.checkOperatorKey(), c.checkMonitor(), c.Analytics.check())
	if (c.RegistryUser == "") != (c.RegistrySecret == "") {
		errs = append(errs, errors.New("registry: want user and password, or neither: a registry of our own would let in whoever knows one of them"))
	}
	if c.Dir == "" {
		errs = append(errs, errors.New("--dir: want a folder for the data"))
	}
	return errors.Join(errs...)
}

func checkAddress(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return errors.New("want HOST:PORT, such as 127.0.0.1:9092")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return fmt.Errorf("port %q is not a number from 0 to 65535", port)
	}
	return nil
}
