package embedded

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"time"
)

const (
	defaultListen         = "127.0.0.1:9092"
	defaultConnections    = 1000
	defaultMaxMessage     = 8 << 20
	maxFrame              = 16 << 20 // of a request
	maxMessageCeiling     = maxFrame - 1<<20
	defaultPartitions     = 4
	maxTopicPartitions    = 1024
	clusterID             = "waybill-embedded"
	defaultRetentionCheck = 30 * time.Second
)

// Config is where the broker keeps its log and where it listens.
type Config struct {
	Dir       string // required; created if missing; one broker at a time
	Listen    string // "127.0.0.1:9092" if empty; port 0 takes a free one
	Advertise string // host:port that clients are told to use; the listener's own address if empty

	AllowAutoCreate bool  // let a client's metadata request create topics
	Partitions      int   // of topics created without a number; 4 if zero
	MaxMessageBytes int32 // largest record batch; 8 MiB if zero, 15 MiB at most
	MaxConnections  int   // further ones are closed at once; 1000 if zero

	Logger *slog.Logger // slog.Default if nil

	retentionEvery time.Duration // tests shorten it
}

func (c Config) withDefaults() (Config, error) {
	if c.Dir == "" {
		return c, errors.New("embedded broker: no directory for the log")
	}
	if c.Listen == "" {
		c.Listen = defaultListen
	}
	if c.Partitions <= 0 {
		c.Partitions = defaultPartitions
	}
	if c.MaxMessageBytes <= 0 {
		c.MaxMessageBytes = defaultMaxMessage
	}
	c.MaxMessageBytes = min(c.MaxMessageBytes, maxMessageCeiling)
	if c.MaxConnections <= 0 {
		c.MaxConnections = defaultConnections
	}
	if c.retentionEvery <= 0 {
		c.retentionEvery = defaultRetentionCheck
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c, c.checkAddresses()
}

// A client connects to what the metadata says, so "all interfaces" is no
// answer to give it.
func (c Config) checkAddresses() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("embedded broker: listen address %q: %w", c.Listen, err)
	}
	if c.Advertise == "" {
		if ip := net.ParseIP(host); host == "" || (ip != nil && ip.IsUnspecified()) {
			return fmt.Errorf("embedded broker: listening on all interfaces (%s) needs an address to advertise to clients, host:port", c.Listen)
		}
		return nil
	}
	host, port, err := net.SplitHostPort(c.Advertise)
	if err != nil {
		return fmt.Errorf("embedded broker: advertised address %q: %w", c.Advertise, err)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || host == "" {
		return fmt.Errorf("embedded broker: advertised address %q: want host:port", c.Advertise)
	}
	return nil
}
