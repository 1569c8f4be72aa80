package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/bench/child"
	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/push"
)

// ServeCommand, under `waybill bench`, is the server that is measured.
const ServeCommand = "push-server"

// everybody is the tenant of an event for all channels.
const everybody = "everybody"

func channelOf(i int) string { return "c" + strconv.Itoa(i) }

// record is event n for a channel.
func record(channel string, n, body int) *kgo.Record {
	env := event.Envelope{
		ID: event.NewID(), Source: "/bench", Type: "bench.Moved", Subject: channel, Time: time.Now(), Tenant: channel, Sequence: 1,
	}
	rec := &kgo.Record{Key: []byte(channel), Value: fmt.Appendf(nil, `{"n":%d,"pad":"%s"}`, n, strings.Repeat("x", body))}
	env.Headers(func(name, value string) {
		rec.Headers = append(rec.Headers, kgo.RecordHeader{Key: name, Value: []byte(value)})
	})
	return rec
}

// ServeConfig of the server that is measured.
type ServeConfig struct {
	Topic       string
	Connections int
	Ready       string // file that its address is written to
	Client      push.Client
	Logger      *slog.Logger
}

// Serve serves streams until ctx ends.
func Serve(ctx context.Context, cfg ServeConfig) error {
	hub, err := push.New(cfg.Client, push.Config{
		Topics: []string{cfg.Topic}, Route: routeTo(cfg.Connections), Key: [32]byte{1}, Logger: cfg.Logger,
		MaxConnections: cfg.Connections + 100,
	})
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /usage", usage)
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) { hub.Serve(w, r, r.URL.Query().Get("channel")) })
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return hub.Run(gctx) })
	g.Go(func() error {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	g.Go(func() error {
		<-gctx.Done()
		return srv.Close()
	})
	g.Go(func() error {
		select {
		case <-hub.Ready():
			return os.WriteFile(cfg.Ready, []byte(l.Addr().String()), 0o600)
		case <-gctx.Done():
			return nil
		}
	})
	return g.Wait()
}

// routeTo sends an event to its tenant's channel, or to all n.
func routeTo(n int) push.Route {
	all := make([]string, n)
	for i := range all {
		all[i] = channelOf(i)
	}
	return func(_ context.Context, rec *kgo.Record, env *event.Envelope) ([]push.Delivery, error) {
		line, err := push.JSON(env, json.RawMessage(rec.Value))
		if err != nil {
			return nil, err
		}
		m := push.Message{Event: "moved", Data: line}
		if env.Tenant != everybody {
			return []push.Delivery{{Channel: env.Tenant, Message: m}}, nil
		}
		out := make([]push.Delivery, n)
		for i := range out {
			out[i] = push.Delivery{Channel: all[i], Message: m}
		}
		return out, nil
	}
}

// figures is what the server costs just now.
type figures struct {
	Memory     float64 `json:"memory"` // bytes of heap and stacks
	RSS        float64 `json:"rss"`    // bytes
	Goroutines float64 `json:"goroutines"`
}

func usage(w http.ResponseWriter, _ *http.Request) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	_ = json.NewEncoder(w).Encode(figures{
		float64(m.HeapAlloc + m.StackInuse), child.UsageOf(os.Getpid()).RSS * 1e6, float64(runtime.NumGoroutine()),
	})
}

// server is the child.
type server struct {
	process *child.Process
	address string
	dir     string
}

func startServer(ctx context.Context, cfg Config, e *engine.Engines, topic string) (_ *server, err error) {
	s := &server{}
	if s.dir, err = os.MkdirTemp("", "waybill-bench-push-"); err != nil {
		return nil, err
	}
	ready := filepath.Join(s.dir, "address")
	s.process, err = child.Start(ctx, "the push server", cfg.Engines.Program, []string{
		"bench", ServeCommand, "--topic", topic, "--connections", strconv.Itoa(cfg.Connections), "--ready", ready,
	}, e.Env())
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(s.dir))
	}
	if err := s.await(ctx, ready); err != nil {
		return nil, errors.Join(err, s.stop())
	}
	return s, nil
}

func (s *server) await(ctx context.Context, path string) error {
	for end := time.Now().Add(patience); ; {
		b, err := os.ReadFile(path)
		if err == nil && len(b) > 0 {
			s.address = string(b)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.process.Done():
			return s.process.Ended()
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("the push server was not ready within %s: %s", patience, s.process.Said())
		}
	}
}

func (s *server) usage(ctx context.Context) (f figures, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.address+"/usage", nil)
	if err != nil {
		return f, err
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return f, err
	}
	defer func() { _ = res.Body.Close() }()
	return f, json.NewDecoder(res.Body).Decode(&f)
}

func (s *server) stop() error {
	return errors.Join(s.process.Stop(), os.RemoveAll(s.dir))
}
