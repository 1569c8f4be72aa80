package config

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/waybillhq/waybill/broker"
)

// file is the shape of the configuration file.
type file struct {
	DatabaseURL string `yaml:"database_url"`
	Kafka       struct {
		Brokers []string `yaml:"brokers"`
		TLS     *struct {
			CAFile   string `yaml:"ca_file"`
			CertFile string `yaml:"cert_file"`
			KeyFile  string `yaml:"key_file"`
		} `yaml:"tls"`
		SASL *struct {
			Mechanism string `yaml:"mechanism"`
			User      string `yaml:"user"`
			Password  string `yaml:"password"`
		} `yaml:"sasl"`
	} `yaml:"kafka"`
	Registry struct {
		URL      string `yaml:"url"`
		User     string `yaml:"user"`
		Password string `yaml:"password"`
		Bearer   string `yaml:"bearer"`
	} `yaml:"registry"`
	Metrics struct {
		Listen string `yaml:"listen"`
	} `yaml:"metrics"`
	OperatorKey string   `yaml:"operator_key"`
	API         API      `yaml:"api"`
	Outbox      Outbox   `yaml:"outbox"`
	CDC         CDC      `yaml:"cdc"`
	Queue       Queue    `yaml:"queue"`
	Webhooks    Webhooks `yaml:"webhooks"`
	Lag         Lag      `yaml:"lag"`
	Alerts      Alerts   `yaml:"alerts"`
	Scale       Scale    `yaml:"scale"`

	Analytics Analytics `yaml:"analytics"`
}

func (c *Config) fromFile(path string) error {
	b, err := os.ReadFile(path) //nolint:gosec // the operator names it
	if err != nil {
		return err
	}
	in, err := parse(b)
	if err != nil {
		return err
	}
	c.DatabaseURL, c.Brokers, c.RegistryURL = in.DatabaseURL, in.Kafka.Brokers, in.Registry.URL
	c.RegistryUser, c.RegistrySecret, c.RegistryBearer = in.Registry.User, in.Registry.Password, in.Registry.Bearer
	c.MetricsListen, c.OperatorKey = in.Metrics.Listen, in.OperatorKey
	c.API, c.Outbox, c.CDC, c.Queue, c.Webhooks = in.API, in.Outbox, in.CDC, in.Queue, in.Webhooks
	c.Lag, c.Alerts, c.Scale, c.Analytics = in.Lag, in.Alerts, in.Scale, in.Analytics
	if err := c.Outbox.checkRelay(); err != nil {
		return err
	}
	if s := in.Kafka.SASL; s != nil {
		c.KafkaSASL = &broker.SASL{Mechanism: s.Mechanism, User: s.User, Password: s.Password}
	}
	if t := in.Kafka.TLS; t != nil {
		c.KafkaTLS, err = tlsConfig(t.CAFile, t.CertFile, t.KeyFile)
	}
	return err
}

// parse refuses what is not understood whole: a misspelt key or a second
// document must not be taken for a default.
func parse(b []byte) (in file, err error) {
	d := yaml.NewDecoder(bytes.NewReader(b))
	d.KnownFields(true)
	if err := d.Decode(&in); err != nil {
		if errors.Is(err, io.EOF) { // a file without settings is no mistake
			err = nil
		}
		return in, plain(err)
	}
	if err := d.Decode(&file{}); !errors.Is(err, io.EOF) {
		return in, errors.New("want one document")
	}
	return in, refuseEmpty(b)
}

// unknownKey is how the decoder tells of a key it has no place for.
var unknownKey = regexp.MustCompile(`(?s)field (.+) not found in type .+`)

// misplaced is how the decoder tells of a value of another kind. It quotes the
// value, which may be a secret, and names a type of this program.
var misplaced = regexp.MustCompile("(?s)cannot unmarshal !*(\\S*)(?: `.*`)? into (.+)")

// kinds are what values are called in the file, by what stands for them here.
func kinds(of string) string {
	of = strings.TrimPrefix(of, "*")
	switch {
	case strings.HasPrefix(of, "[]"):
		return "a list, as in [a, b]"
	case of == "string":
		return "a text"
	case of == "bool":
		return "true or false"
	case strings.HasPrefix(of, "int"), strings.HasPrefix(of, "uint"), strings.HasPrefix(of, "float"):
		return "a number"
	case of == "time.Duration":
		return "a duration with its unit, as 30s"
	}
	return "a section, with its settings indented below it"
}

var given = map[string]string{
	"int": "a number", "float": "a number", "str": "a text", "bool": "true or false", "seq": "a list", "map": "a section",
}

func sayMisplaced(text string) string {
	m := misplaced.FindStringSubmatchIndex(text)
	if m == nil {
		return text
	}
	got, ok := given[text[m[2]:m[3]]]
	if !ok {
		got = "something else"
	}
	return text[:m[0]] + "want " + kinds(text[m[4]:m[5]]) + ", got " + got
}

// plain says what is wrong without naming types of this program.
func plain(err error) error {
	var wrong *yaml.TypeError
	if !errors.As(err, &wrong) {
		return err
	}
	said := make([]string, len(wrong.Errors))
	for i, text := range wrong.Errors {
		said[i] = sayMisplaced(unknownKey.ReplaceAllString(text, "there is no setting ${1} here"))
	}
	return fmt.Errorf("%s; the README lists what the file may hold", strings.Join(said, "; "))
}

// refuseEmpty refuses a section that is begun and left empty: read as if it
// were not there, it would send passwords in the clear.
func refuseEmpty(b []byte) error {
	var said struct {
		Kafka map[string]any `yaml:"kafka"`
	}
	if err := yaml.Unmarshal(b, &said); err != nil {
		return err
	}
	for _, name := range []string{"tls", "sasl"} {
		if v, ok := said.Kafka[name]; ok && v == nil {
			return fmt.Errorf("kafka.%s is empty: fill it in or leave it out (tls: {} trusts the system's authorities)", name)
		}
	}
	return nil
}

func tlsConfig(ca, cert, key string) (*tls.Config, error) {
	out := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != "" {
		pem, err := os.ReadFile(ca)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls.ca_file: %w", err)
		}
		out.RootCAs = x509.NewCertPool()
		if !out.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("kafka.tls.ca_file: %s holds no certificate", ca)
		}
	}
	if cert != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			return nil, fmt.Errorf("kafka.tls.cert_file, key_file: %w", err)
		}
		out.Certificates = []tls.Certificate{pair}
	}
	return out, nil
}
