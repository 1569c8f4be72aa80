package broker

import (
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"
)

// ErrNoBrokers says that a Config names no broker to start from.
var ErrNoBrokers = errors.New("no brokers configured")

// Config is how to reach a broker.
type Config struct {
	Brokers  []string     // seeds, host:port
	ClientID string       // shown in the broker's logs and quotas; "waybill" if empty
	TLS      *tls.Config  // nil: plain TCP
	SASL     *SASL        // nil: no authentication
	Logger   *slog.Logger // nil: slog.Default; warnings and errors only
	Outages  *Outages     // shared by clients that are to tell of one together; nil: each for itself
}

// Client connects lazily: it succeeds without a broker being up. The caller's
// options come last and win.
func (c Config) Client(opts ...kgo.Opt) (*kgo.Client, error) {
	base, err := c.options()
	if err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(append(base, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return cl, nil
}

func (c Config) options() ([]kgo.Opt, error) {
	if len(c.Brokers) == 0 {
		return nil, ErrNoBrokers
	}
	id := c.ClientID
	if id == "" {
		id = "waybill"
	}
	outages := c.Outages
	if outages == nil {
		outages = NewOutages()
	}
	opts := []kgo.Opt{
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(id),
		kgo.WithLogger(newLogger(c.Logger, outages)),
		kgo.WithHooks(outages),
	}
	if c.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(c.TLS))
	}
	if c.SASL != nil {
		m, err := c.SASL.mechanism()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(m))
	}
	return opts, nil
}

// logger lets warnings and errors through whatever the handler's own level
// is: the client tells far more at info than an operator wants to read.
type logger struct {
	*kslog.Logger
	outages *Outages
}

func newLogger(l *slog.Logger, outages *Outages) kgo.Logger {
	if l == nil {
		l = slog.Default()
	}
	return logger{kslog.New(l), outages}
}

// Level implements kgo.Logger.
func (l logger) Level() kgo.LogLevel {
	return min(l.Logger.Level(), kgo.LogLevelWarn)
}

// Log implements kgo.Logger.
func (l logger) Log(level kgo.LogLevel, text string, keyvals ...any) {
	say, untold := l.outages.lets(text, keyvals)
	if !say {
		return
	}
	if untold > 0 {
		keyvals = append(keyvals, "not_told", untold)
	}
	l.Logger.Log(level, text, keyvals...)
}
