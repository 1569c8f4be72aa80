package webhook

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/webhook/sign"
)

// receivers are two servers of this machine: one answers, the other never does.
type receivers struct {
	wellURL, stalledURL string
	servers             []*http.Server
	stalled             atomic.Int64 // calls
	received            atomic.Int64 // events, each once
	twice               atomic.Int64

	mu    sync.Mutex
	sent  map[uuid.UUID]time.Time // to be measured, until they are received
	seen  map[uuid.UUID]bool
	waits []time.Duration
}

func listen(ctx context.Context) (*receivers, error) {
	r := &receivers{sent: map[uuid.UUID]time.Time{}, seen: map[uuid.UUID]bool{}}
	var err error
	if r.wellURL, err = r.serve(ctx, r.answer); err != nil {
		return nil, err
	}
	if r.stalledURL, err = r.serve(ctx, r.stall); err != nil {
		r.close()
		return nil, err
	}
	return r, nil
}

func (r *receivers) serve(ctx context.Context, h http.HandlerFunc) (url string, err error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	srv := &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second}
	r.servers = append(r.servers, srv)
	go func() {
		if err := srv.Serve(ln); !errors.Is(err, http.ErrServerClosed) {
			panic(err) // nothing measured after that would be worth anything
		}
	}()
	return "http://" + ln.Addr().String() + "/", nil
}

func (r *receivers) close() {
	for _, s := range r.servers {
		_ = s.Close() // and whatever is under way with it
	}
}

func (r *receivers) answer(_ http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	now := time.Now()
	id, err := uuid.Parse(req.Header.Get(sign.HeaderID))
	if err != nil {
		return // it is missed, and told as lost
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen[id] {
		r.twice.Add(1)
		return
	}
	r.seen[id] = true
	r.received.Add(1)
	if at, ok := r.sent[id]; ok {
		r.waits = append(r.waits, now.Sub(at))
		delete(r.sent, id)
	}
}

func (r *receivers) stall(_ http.ResponseWriter, req *http.Request) {
	_, _ = io.Copy(io.Discard, req.Body)
	r.stalled.Add(1)
	<-req.Context().Done() // until the sender hangs up
}

// measure has events measured from now.
func (r *receivers) measure(ids []uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := time.Now()
	for _, id := range ids {
		r.sent[id] = now
	}
}

// take gives what was measured since it was asked last, and how many events are
// not received yet.
func (r *receivers) take() (waits []time.Duration, missing int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	waits, r.waits = r.waits, nil
	return waits, len(r.sent)
}
