package topic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/bench/stat"
	"github.com/waybillhq/waybill/broker"
)

// Load is a steady rate of writes, each due at its moment whether or not the
// one before has returned.
type Load struct {
	Keys     Keys
	Rate     int           // events a second, over all writers
	Warmup   time.Duration // of load before, whose waits are not counted
	Length   time.Duration
	Patience time.Duration // after the load, for what is still missing

	// Write commits an event and returns when it is committed. It is called
	// by Keys.Writers goroutines.
	Write func(ctx context.Context, writer int, key string, sequence int64) error
}

// Waits is how long events took from the return of their commit to the moment
// a consumer of the topic held them: through the relay, into the broker
// durably, and out of it by a fetch that was already waiting. An event that a
// consumer holds before its commit has returned has waited 0.
type Waits struct {
	Mean, P50, P99, Max float64 // ms
	Written             int64   // with those of the warm-up
	Tally               *Tally
	Lost                int64
}

// Latency puts the load on and follows the topic, which must be new.
func Latency(ctx context.Context, cfg broker.Config, name string, load Load) (w Waits, err error) {
	cl, err := consume(cfg, name)
	if err != nil {
		return w, err
	}
	defer cl.Close()
	m := newWaiting(load)
	following, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	go func() {
		defer close(done) // whoever asks second hears nothing
		done <- follow(following, cl, name, m.saw)
	}()
	written, err := m.load(ctx)
	if err == nil {
		err = m.settle(ctx, written, done)
	}
	stop()
	if failed := <-done; err == nil {
		err = failed
	}
	if err != nil {
		return w, err
	}
	return m.sum(written), nil
}

// waiting is a load under way. Times are since began; an event's place in them
// is its order over all writers.
type waiting struct {
	Load
	began     time.Time
	total     int64
	committed []atomic.Int64
	received  []atomic.Int64
	mu        sync.Mutex
	tally     *Tally
}

func newWaiting(l Load) *waiting {
	n := int64((l.Warmup + l.Length).Seconds() * float64(l.Rate))
	return &waiting{
		Load: l, began: time.Now(), total: n, tally: NewTally(l.Keys),
		committed: make([]atomic.Int64, n), received: make([]atomic.Int64, n),
	}
}

func (m *waiting) load(ctx context.Context) (written int64, err error) {
	start := time.Now()
	g, ctx := errgroup.WithContext(ctx)
	for writer := range m.Keys.Writers {
		g.Go(func() error {
			for j := range m.Keys.Share(writer, m.total) {
				i := j*int64(m.Keys.Writers) + int64(writer)
				if !until(ctx, start.Add(time.Duration(i)*time.Second/time.Duration(m.Rate))) {
					return ctx.Err()
				}
				key, sequence := m.Keys.Of(writer, j)
				if err := m.Write(ctx, writer, key, sequence); err != nil {
					return fmt.Errorf("write at %d events/s: %w", m.Rate, err)
				}
				m.committed[i].Store(int64(time.Since(m.began)))
			}
			return nil
		})
	}
	return m.total, g.Wait()
}

func until(ctx context.Context, t time.Time) bool {
	wait := time.NewTimer(time.Until(t))
	defer wait.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-wait.C:
		return true
	}
}

func (m *waiting) saw(rec *kgo.Record) error {
	now := int64(time.Since(m.began))
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.tally.Seen
	writer, j, err := m.tally.Saw(rec)
	if err != nil {
		return err
	}
	i := j*int64(m.Keys.Writers) + int64(writer)
	if i >= m.total {
		return fmt.Errorf("topic %s holds a record that was not written in this load: key %q", rec.Topic, rec.Key)
	}
	if m.tally.Seen > before {
		m.received[i].Store(now)
	}
	return nil
}

// settle waits until all has been seen, or patience is over: what is missing
// then is lost.
func (m *waiting) settle(ctx context.Context, written int64, ended <-chan error) error {
	late := time.NewTimer(m.Patience)
	defer late.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for m.missing(written) > 0 {
		select {
		case <-tick.C:
		case <-late.C:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			return errors.Join(errors.New("the topic's reader ended"), err)
		}
	}
	return nil
}

func (m *waiting) missing(written int64) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return written - m.tally.Seen
}

func (m *waiting) sum(written int64) Waits {
	var ds []time.Duration
	for i := int64(m.Warmup.Seconds() * float64(m.Rate)); i < m.total; i++ {
		if r := m.received[i].Load(); r != 0 {
			ds = append(ds, time.Duration(max(0, r-m.committed[i].Load())))
		}
	}
	return Waits{
		Mean: stat.Mean(ds), P50: stat.Quantile(ds, 0.5), P99: stat.Quantile(ds, 0.99), Max: stat.Quantile(ds, 1),
		Written: written, Tally: m.tally, Lost: m.missing(written),
	}
}
