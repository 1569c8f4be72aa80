package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/registry/compat"
)

// Config is how a server keeps its schemas. The zero value is right for a
// broker that compacts nothing.
type Config struct {
	Topic         string              // "_schemas" if empty
	Capabilities  broker.Capabilities // of the broker
	Compatibility compat.Level        // global level where nobody set one; BACKWARD if empty
	Logger        *slog.Logger        // slog.Default() if nil

	Auth Auth // who may ask; everybody if empty

	// Hosts are names, in lower case, by which it may be asked on a loopback
	// address besides localhost: that of a proxy before it which passes the
	// client's Host on.
	Hosts []string
}

// Server is a schema registry. It serves HTTP once it is ready; before that it
// answers 503.
type Server struct {
	broker broker.Config
	cfg    Config
	state  *state
	mux    *http.ServeMux
	ready  chan struct{}
	over   chan struct{} // closed when Run returns

	name    string // tells our writes from those of other servers
	writing chan struct{}
	writes  int

	mu       sync.Mutex
	client   *kgo.Client // nil unless Run runs
	awaiting map[string]*verdict
}

// New makes a server over the broker that b reaches. Run brings it to life.
func New(b broker.Config, cfg Config) *Server {
	if cfg.Topic == "" {
		cfg.Topic = "_schemas"
	}
	if cfg.Compatibility == "" {
		cfg.Compatibility = compat.Backward
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	s := &Server{
		broker:   b,
		cfg:      cfg,
		state:    newState(cfg.Compatibility),
		ready:    make(chan struct{}),
		over:     make(chan struct{}),
		name:     uuid.NewString(),
		writing:  make(chan struct{}, 1),
		awaiting: map[string]*verdict{},
	}
	s.mux = s.routes()
	return s
}

// Ready is closed when the topic has been read to its end.
func (s *Server) Ready() <-chan struct{} { return s.ready }

// Run declares the topic, reads it and follows it until ctx ends, which is no
// error. It runs once.
func (s *Server) Run(ctx context.Context) error {
	defer close(s.over)
	if err := s.declare(ctx); err != nil {
		return ended(ctx, err)
	}
	client, err := s.broker.Client(s.options()...)
	if err != nil {
		return fmt.Errorf("schema registry: %w", err)
	}
	defer client.Close()
	s.use(client)
	defer s.use(nil)

	g, running := errgroup.WithContext(ctx)
	g.Go(func() error { return s.follow(running, client) })
	g.Go(func() error { return s.catchUp(running) })
	return ended(ctx, g.Wait())
}

// ended takes an error for none when it only says that ctx is over.
func ended(ctx context.Context, err error) error {
	select {
	case <-ctx.Done():
		return nil
	default:
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("schema registry: %w", err)
}

func (s *Server) use(client *kgo.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = client
}

func (s *Server) options() []kgo.Opt {
	start := kgo.NewOffset().AtStart()
	return []kgo.Opt{
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{s.cfg.Topic: {0: start}}),
		// A topic that lost what we have read must not be followed further.
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.ProducerLinger(0),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.RecordDeliveryTimeout(writeTimeout),
	}
}
