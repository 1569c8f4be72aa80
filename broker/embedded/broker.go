package embedded

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"

	"github.com/waybillhq/waybill/broker"
)

// ErrInUse says that another process has the directory's log open.
var ErrInUse = errors.New("the log is in use by another process")

const (
	segmentBytes    = 32 << 20 // disk space comes back by whole segments
	maxGroupMembers = 1000
	never           = 100 * 365 * 24 * time.Hour
)

// closeTimeout bounds a clean stop. What was acknowledged is on disk anyway;
// a clean stop only makes the next start faster.
const closeTimeout = 15 * time.Second

// Broker is a running broker.
type Broker struct {
	addr    string
	cluster *kfake.Cluster
	guard   *listener
	keep    *retention
	lock    *os.File
	log     *slog.Logger

	stop func() // ends the retention loop
	done chan struct{}
	once sync.Once
	err  error
}

// Start opens the log in cfg.Dir and serves it. The context bounds the start
// only; Close stops the broker. A taken port is an error that
// errors.Is(err, syscall.EADDRINUSE) recognises; a log that is open elsewhere
// is ErrInUse.
func Start(ctx context.Context, cfg Config) (*Broker, error) { //nolint:contextcheck // ctx bounds the start, not the broker
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("embedded broker: %w", err)
	}
	lock, err := lockDir(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("embedded broker: %s: %w", cfg.Dir, err)
	}
	guard, err := listen(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	undo := func() error { return errors.Join(guard.shut(), lock.Close()) } //nolint:contextcheck // what it ends has outlived its context
	own, err := guard.client(cfg)
	if err != nil {
		return nil, errors.Join(err, undo())
	}
	guard.ghosts.own = own
	cluster, err := kfake.NewCluster(options(cfg, guard)...)
	if err != nil {
		own.Close()
		return nil, errors.Join(fmt.Errorf("embedded broker: open the log in %s: %w", cfg.Dir, err), undo())
	}
	if cfg.AllowAutoCreate {
		guard.guard.autoCreate = creator(cluster)
	}
	close(guard.ready)
	keep := newRetention(cluster, own, guard, cfg)
	loop, stop := context.WithCancel(context.Background())
	b := &Broker{
		addr: guard.Addr().String(), cluster: cluster, guard: guard, keep: keep, lock: lock, log: cfg.Logger,
		stop: stop, done: make(chan struct{}),
	}
	go func() {
		defer close(b.done)
		keep.run(loop)
		guard.ghosts.end()
		own.Close()
	}()
	return b, nil
}

func options(cfg Config, guard *listener) []kfake.Opt {
	opts := []kfake.Opt{
		kfake.NumBrokers(1),
		kfake.ListenFn(func(string, string) (net.Listener, error) { return guard, nil }),
		kfake.ClusterID(clusterID),
		kfake.DataDir(cfg.Dir),
		kfake.SyncWrites(),
		kfake.DefaultNumPartitions(cfg.Partitions),
		kfake.MaxVersions(versions()),
		kfake.WithLogger(kfakeLogger{cfg.Logger, guard.broken}),
		kfake.BrokerConfigs(map[string]string{
			"message.max.bytes":          strconv.Itoa(int(cfg.MaxMessageBytes)),
			"default.replication.factor": "1",
			"log.segment.bytes":          strconv.Itoa(segmentBytes),
			"group.max.size":             strconv.Itoa(maxGroupMembers),
			// Its own retention is kept from ever running, see retain.
			"log.cleaner.backoff.ms": strconv.FormatInt(never.Milliseconds(), 10),
		}),
	}
	return opts
}

// creator makes a topic unless it is there.
func creator(cluster *kfake.Cluster) func(string) error {
	return func(topic string) error {
		if cluster.TopicInfo(topic) != nil {
			return nil
		}
		err := cluster.CreateTopic(topic, 0, nil)
		if errors.Is(err, kerr.TopicAlreadyExists) {
			return nil
		}
		return err
	}
}

// Addr is what clients connect to: the advertised address.
func (b *Broker) Addr() string { return b.addr }

// Client is the configuration of a client of this broker.
func (b *Broker) Client() broker.Config {
	return broker.Config{Brokers: []string{b.addr}, Logger: b.log}
}

// Capabilities are all off: see the package's limits.
func (b *Broker) Capabilities() broker.Capabilities { return broker.Capabilities{} }

// Failed is closed when a write to the log has failed. From then on the broker
// serves nobody; Err says what to do.
func (b *Broker) Failed() <-chan struct{} { return b.guard.broken.ended }

// Err is an ErrWriteFailed after Failed is closed, and nil before.
func (b *Broker) Err() error {
	select {
	case <-b.Failed():
		return b.guard.broken.err()
	default:
		return nil
	}
}

// Suspend makes an outage: every connection is closed, and new ones are until
// Suspend(false). What was acknowledged stays; a request under way may or may
// not have been carried out, as in any outage.
func (b *Broker) Suspend(yes bool) { b.guard.suspend(yes) }

// Close stops serving, writes what makes the next start quick and lets the
// directory go. It takes 15 s at most; the log is whole either way.
func (b *Broker) Close() error {
	b.once.Do(func() { b.err = b.close() })
	return b.err
}

func (b *Broker) close() error {
	b.stop()
	closed := make(chan struct{})
	go func() {
		defer close(closed)
		<-b.done
		b.cluster.Close()
	}()
	var errs []error
	select {
	case <-closed:
	case <-time.After(closeTimeout):
		errs = append(errs, fmt.Errorf("embedded broker: did not stop within %s", closeTimeout))
	}
	errs = append(errs, b.guard.broken.forget(), b.guard.shut(), b.lock.Close())
	return errors.Join(errs...)
}

// kfakeLogger passes on what an operator can act upon.
type kfakeLogger struct {
	log    *slog.Logger
	broken *broken
}

// Logf implements kfake.Logger.
func (l kfakeLogger) Logf(level kfake.LogLevel, format string, args ...any) {
	switch level {
	case kfake.LogLevelError:
		l.log.Error("embedded broker", "detail", fmt.Sprintf(format, args...))
	case kfake.LogLevelWarn:
		detail := fmt.Sprintf(format, args...)
		l.log.Warn("embedded broker", "detail", detail)
		l.broken.hear(detail)
	case kfake.LogLevelNone, kfake.LogLevelInfo, kfake.LogLevelDebug:
	}
}
