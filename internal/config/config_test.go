package config

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// read gives what the environment and a file with text say.
func read(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "waybill.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(EnvFile, path)
	c := Default()
	err := c.FromEnvironment()
	return c, err
}

// alone keeps the environment of whoever runs the tests out.
func alone(t *testing.T) {
	for _, name := range []string{EnvDatabaseURL, EnvBrokers, EnvRegistryURL, EnvFile, EnvRelay, EnvExactlyOnce, EnvMetrics, EnvWebhookKeys, EnvWebhookAllow} {
		t.Setenv(name, "")
	}
}

func TestEnvironmentBeatsFile(t *testing.T) {
	alone(t)
	const file = `
database_url: postgres://file
kafka:
  brokers: [file:1, file:2]
  sasl: {mechanism: PLAIN, user: u, password: p}
registry: {url: "http://file", user: ru, password: rp, bearer: rb}
`
	c, err := read(t, file)
	if err != nil {
		t.Fatal(err)
	}
	if c.DatabaseURL != "postgres://file" || !reflect.DeepEqual(c.Brokers, []string{"file:1", "file:2"}) ||
		c.RegistryURL != "http://file" || c.RegistryUser != "ru" || c.RegistrySecret != "rp" || c.RegistryBearer != "rb" ||
		c.KafkaSASL == nil || c.KafkaSASL.Mechanism != "PLAIN" || c.KafkaSASL.User != "u" || c.KafkaSASL.Password != "p" {
		t.Errorf("from the file: %+v", c)
	}
	t.Setenv(EnvDatabaseURL, "postgres://env")
	t.Setenv(EnvBrokers, " env:1 ,, env:2,")
	t.Setenv(EnvRegistryURL, "http://env")
	if c, err = read(t, file); err != nil {
		t.Fatal(err)
	}
	if c.DatabaseURL != "postgres://env" || !reflect.DeepEqual(c.Brokers, []string{"env:1", "env:2"}) || c.RegistryURL != "http://env" {
		t.Errorf("environment over file: %+v", c)
	}
	if c.Listen != Default().Listen || c.Dir != Default().Dir {
		t.Errorf("what nobody said is not the default: %+v", c)
	}
}

func TestFileWithoutSettingsIsNoMistake(t *testing.T) {
	alone(t)
	for _, text := range []string{"", "\n", "# nothing yet\n", "---\n", "kafka:\n", "{}"} {
		c, err := read(t, text)
		if err != nil || !reflect.DeepEqual(c, Default()) {
			t.Errorf("%q: %v %+v", text, err, c)
		}
	}
}

func TestFileThatCannotBeMeantIsRefused(t *testing.T) {
	alone(t)
	for text, say := range map[string]string{
		"kafak: {}":                                  "no setting kafak",
		"outbox: {relya: wal}":                       "no setting relya",
		"outbox: {relay: walll}":                     "outbox.relay",
		"kafka: {broker: [a:1]}":                     "broker",
		"kafka: {brokers: {a: 1}}":                   "line 1",
		"database_url: [a]":                          "line 1",
		"kafka: {tls: {ca_file: /no/such/file}}":     "kafka.tls.ca_file",
		"kafka: {tls: {cert_file: /no/such/file}}":   "kafka.tls.cert_file",
		"kafka: {tls: {key_file: /no/such/file}}":    "key_file",
		"kafka: {tls: {ca_file: /dev/null}}":         "no certificate",
		"\tkafka:":                                   "yaml",
		"database_url: a\n---\ndatabase_url: b":      "one document",
		"kafka:\n  brokers: [a:1]\n  tls:\n":         "kafka.tls",
		"kafka:\n  brokers: [a:1]\n  sasl:\n":        "kafka.sasl",
		"kafka:\n  brokers: [a:1]\n  tls: true\n":    "line 3",
		"registry: {url: http://a, token: mistaken}": "token",
	} {
		_, err := read(t, text)
		if err == nil || !strings.Contains(err.Error(), say) || !strings.Contains(err.Error(), EnvFile) {
			t.Errorf("%q: %v, want it to say %q", text, err, say)
		}
	}
	c, err := read(t, "kafka: {brokers: [a:1], tls: {}}")
	if err != nil || c.KafkaTLS == nil {
		t.Errorf("tls with the system's authorities: %v %+v", err, c.KafkaTLS)
	}
}

func TestCheckNamesEveryFlagThatCannotBeMeant(t *testing.T) {
	if c := Default(); c.Check() != nil {
		t.Errorf("the defaults: %v", c.Check())
	}
	c := Config{Listen: "8080", KafkaListen: "a:b", KafkaAdvertise: "a", RegistryListen: "", PostgresPort: -1}
	err := c.Check()
	if err == nil {
		t.Fatal("accepted")
	}
	for _, flag := range []string{"--listen", "--kafka-listen", "--kafka-advertise", "--registry-listen", "--postgres-port", "--dir"} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("%s is not named in: %v", flag, err)
		}
	}
}

func TestARelayThatIsMisspeltIsRefusedWhereItStands(t *testing.T) {
	alone(t)
	t.Setenv(EnvRelay, "walll")
	c := Default()
	if err := c.FromEnvironment(); err == nil || !strings.Contains(err.Error(), EnvRelay) {
		t.Errorf("%v, want it to name %s", err, EnvRelay)
	}
}

func TestMetricsAddressIsReadFromFileAndEnvironment(t *testing.T) {
	alone(t)
	c, err := read(t, "metrics: {listen: \"127.0.0.1:1\"}")
	if err != nil || c.MetricsListen != "127.0.0.1:1" || c.Check() != nil {
		t.Errorf("from the file: %v %+v", err, c)
	}
	t.Setenv(EnvMetrics, MetricsOff)
	if err := c.FromEnvironment(); err != nil || c.MetricsListen != MetricsOff || c.Check() != nil {
		t.Errorf("environment over file: %v %v %+v", err, c.Check(), c)
	}
	c.MetricsListen = "9464"
	if err := c.Check(); err == nil || !strings.Contains(err.Error(), "--metrics-listen") {
		t.Errorf("%v", err)
	}
}
