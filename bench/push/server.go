package push

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/bench/child"
)

// Server is what streams are opened to: Waybill's, or another that is compared
// with it.
type Server interface {
	// Address is host:port, of plain HTTP/1.
	Address() string
	// Path is what is asked for to follow a channel, and [Everybody].
	Path(channel string) string
	// Opened tells whether a line of the answer says that the stream is open.
	Opened(line []byte) bool
	// Send publishes event n, [Payload], to a channel. It returns before that is
	// done, and calls done then.
	Send(ctx context.Context, channel string, n, body int, done func(error))
	// Usage is what the server costs just now.
	Usage(ctx context.Context) (Usage, error)
	// CPU is the seconds of processor time it has taken.
	CPU() float64
}

// Everybody is the channel of events for all.
const Everybody = "everybody"

// Usage is what a server's process costs.
type Usage struct {
	Memory     float64 `json:"memory"` // bytes of heap and stacks, after a collection
	RSS        float64 `json:"rss"`    // bytes
	Goroutines float64 `json:"goroutines"`
}

// Process is a server that plays its part in a process of its own, with
// [ServeReady].
type Process struct {
	process *child.Process
	address string
	dir     string
}

// Start starts program and waits until it listens. args is told the file that it
// writes its address to.
func Start(ctx context.Context, name, program string, args func(ready string) []string, env []string) (_ *Process, err error) {
	p := &Process{}
	if p.dir, err = os.MkdirTemp("", "waybill-bench-push-"); err != nil {
		return nil, err
	}
	ready := filepath.Join(p.dir, "address")
	if p.process, err = child.Start(ctx, name, program, args(ready), env); err != nil {
		return nil, errors.Join(err, os.RemoveAll(p.dir))
	}
	if err := p.await(ctx, name, ready); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *Process) await(ctx context.Context, name, path string) error {
	for end := time.Now().Add(patience); ; {
		b, err := os.ReadFile(path)
		if err == nil && len(b) > 0 {
			p.address = string(b)
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-p.process.Done():
			return p.process.Ended()
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(end) {
			return fmt.Errorf("%s was not ready within %s: %s", name, patience, p.process.Said())
		}
	}
}

// Address implements [Server].
func (p *Process) Address() string { return p.address }

// CPU implements [Server].
func (p *Process) CPU() float64 { return p.process.Usage().CPU }

// Usage implements [Server]: it asks what [ServeReady] answers.
func (p *Process) Usage(ctx context.Context) (u Usage, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.address+usagePath, nil)
	if err != nil {
		return u, err
	}
	req.Close = true
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return u, err
	}
	defer func() { _ = res.Body.Close() }()
	return u, json.NewDecoder(res.Body).Decode(&u)
}

// Stop ends the process.
func (p *Process) Stop() error {
	return errors.Join(p.process.Stop(), os.RemoveAll(p.dir))
}

const usagePath = "/usage"

// ServeReady serves handler on a port of loopback until ctx ends, and what the
// process costs; its address is in the file ready once open is closed.
func ServeReady(ctx context.Context, handler http.Handler, open <-chan struct{}, ready string) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+usagePath, usage)
	mux.Handle("/", handler)
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	srv := &http.Server{Handler: mux, ReadHeaderTimeout: patience}
	g, gctx := errgroup.WithContext(ctx)
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
		case <-open:
			return os.WriteFile(ready, []byte(l.Addr().String()), 0o600)
		case <-gctx.Done():
			return nil
		}
	})
	return g.Wait()
}

func usage(w http.ResponseWriter, _ *http.Request) {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	_ = json.NewEncoder(w).Encode(Usage{
		float64(m.HeapAlloc + m.StackInuse), child.UsageOf(os.Getpid()).RSS * 1e6, float64(runtime.NumGoroutine()),
	})
}

// Payload is the JSON of event n with so many bytes of padding.
func Payload(n, body int) []byte {
	b := append(strconv.AppendInt([]byte(`{"n":`), int64(n), 10), `,"pad":"`...)
	for range body {
		b = append(b, 'x')
	}
	return append(b, `"}`...)
}
