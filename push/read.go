package push

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/event"
)

// restartPause is between two attempts to read a log that failed.
const restartPause = time.Second

// lookTimeout is for the requests of one look at the log.
const lookTimeout = 5 * time.Second

// errLayout means that topics were created again or have new partitions.
var errLayout = errors.New("the log's layout changed")

// errClient is a client that cannot be made, which trying again does not mend.
var errClient = errors.New("client for the log")

// read loads the tail and follows the log, from the beginning again whenever
// the log is no longer the one it was.
func (h *Hub) read(ctx context.Context) error {
	for {
		err := h.session(ctx)
		h.endAll()
		if ctx.Err() != nil {
			return nil //nolint:nilerr // what broke because ctx ended is not a fault
		}
		if errors.Is(err, errClient) {
			return err
		}
		h.log.WarnContext(ctx, "push reads the log from its tail again", "error", err)
		h.metrics.restarts.Inc()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(restartPause):
		}
	}
}

// session reads the log under one layout.
func (h *Hub) session(ctx context.Context) error {
	cl, err := h.client()
	if err != nil {
		return fmt.Errorf("%w: %w", errClient, err)
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	l, err := readLayout(ctx, admin, h.cfg.Topics, h.cfg.LatestTopics)
	if err != nil {
		return err
	}
	starts, ends, err := readEnds(ctx, admin, l)
	if err != nil {
		return err
	}
	w := newWindow(l, tailStarts(starts, ends, l.latest(), h.cfg), h.cfg)
	r := &logReader{
		hub: h, window: w, ends: ends,
		ids: newIDSet(2 * h.cfg.Tail), latestIDs: newIDSet(2 * h.cfg.Tail),
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return r.run(ctx) })
	g.Go(func() error { return h.watch(ctx, admin, w) })
	return g.Wait()
}

// tailStarts gives every partition an equal share of the tail, those of telemetry
// of what is kept of that.
func tailStarts(starts, ends []int64, latest []bool, cfg Config) []int64 {
	telemetry := 0
	for _, is := range latest {
		if is {
			telemetry++
		}
	}
	share := max(cfg.Tail/max(len(ends)-telemetry, 1), 1)
	latestShare := max(cfg.Latest/max(telemetry, 1), 1)
	from := make([]int64, len(ends))
	for i := range ends {
		n := share
		if latest[i] {
			n = latestShare
		}
		from[i] = max(ends[i]-int64(n), starts[i], 0)
	}
	return from
}

// watch looks at the log's end for the lag metric, and ends the session when
// the layout is no longer what it was.
func (h *Hub) watch(ctx context.Context, admin *kadm.Client, w *window) error {
	defer h.metrics.lag.unknown()
	t := time.NewTicker(h.cfg.Watch)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		if err := h.look(ctx, admin, w); err != nil {
			if errors.Is(err, errLayout) {
				return err
			}
			h.metrics.lag.unknown() // and the log client says itself what is wrong
		}
	}
}

func (h *Hub) look(ctx context.Context, admin *kadm.Client, w *window) error {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	l, err := readLayout(ctx, admin, h.cfg.Topics, h.cfg.LatestTopics)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("%w: %w", errLayout, err)
	}
	if err != nil {
		return err
	}
	if !l.equal(w.layout) {
		return errLayout
	}
	_, ends, err := readEnds(ctx, admin, l)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.metrics.lag.set(behind(w.next, ends))
	return nil
}

func behind(next, ends []int64) (n int64) {
	for i := range ends {
		n += max(ends[i]-next[i], 0)
	}
	return n
}

// logReader is the one goroutine that reads the log.
type logReader struct {
	hub    *Hub
	window *window
	ends   []int64 // at the start: past them the tail is loaded
	ids    *idSet
	// latestIDs is apart: a flood of telemetry must not make the hub forget
	// which events it has delivered.
	latestIDs *idSet
}

func (r *logReader) run(ctx context.Context) error {
	cl, err := r.hub.client(
		kgo.ConsumePartitions(r.window.layout.consume(r.window.next)),
		// An offset the log no longer has means that something was missed. The
		// client must not go on elsewhere in silence.
		kgo.ConsumeResetOffset(kgo.NoResetOffset()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		// With markers of transactions the position always reaches the end.
		kgo.KeepControlRecords(),
		kgo.FetchMinBytes(1),
		kgo.FetchMaxWait(500*time.Millisecond),
		kgo.FetchMaxBytes(8<<20),
		kgo.FetchMaxPartitionBytes(1<<20),
	)
	if err != nil {
		return fmt.Errorf("%w: %w", errClient, err)
	}
	defer cl.Close()
	r.openIfLoaded()
	for {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := r.fetched(ctx, fetches); err != nil {
			return err
		}
		r.openIfLoaded()
	}
}

// fetched takes in what was read. An error that names a partition means that
// the client gave it up.
func (r *logReader) fetched(ctx context.Context, fetches kgo.Fetches) error {
	var failed error
	fetches.EachError(func(topic string, p int32, err error) {
		if topic == "" {
			r.hub.log.WarnContext(ctx, "push cannot read the log at the moment", "error", err)
			return
		}
		failed = fmt.Errorf("read %s/%d: %w", topic, p, err)
	})
	if failed != nil {
		return failed
	}
	for it := fetches.RecordIter(); !it.Done(); {
		if err := r.take(ctx, it.Next()); err != nil {
			return err
		}
	}
	return nil
}

// openIfLoaded lets clients in once the reader has come to where the log ended
// at the start. Before, a cursor could not be judged.
func (r *logReader) openIfLoaded() {
	if r.ends == nil || behind(r.window.next, r.ends) > 0 {
		return
	}
	r.ends = nil
	h := r.hub
	h.mu.Lock()
	h.window = r.window
	h.mu.Unlock()
	h.metrics.lag.set(0)
	h.readyOnce.Do(func() { close(h.ready) })
}

// take moves the hub past one record and delivers what it says.
func (r *logReader) take(ctx context.Context, rec *kgo.Record) error {
	w := r.window
	slot := w.layout.slot(rec.Topic, rec.Partition)
	if rec.Offset < w.next[slot] {
		return fmt.Errorf("%s/%d went back from offset %d to %d", rec.Topic, rec.Partition, w.next[slot], rec.Offset)
	}
	deliveries := r.deliveries(ctx, rec, slot)
	if ctx.Err() != nil {
		return ctx.Err() // the route may have given up for that reason
	}
	var frames []*frame
	if len(deliveries) > 0 {
		frames = w.encode(r.hub.sealer, slot, rec.Offset, deliveries)
		r.hub.metrics.delay.Observe(time.Since(rec.Timestamp).Seconds())
	}
	r.hub.mu.Lock()
	defer r.hub.mu.Unlock()
	w.next[slot] = rec.Offset + 1
	if len(frames) > 0 {
		r.hub.metrics.forgotten.Add(float64(w.keep(frames, deliveries, r.hub.give)))
	}
	return nil
}

// deliveries of a record, none if it says nothing to anybody.
func (r *logReader) deliveries(ctx context.Context, rec *kgo.Record, slot int) []Delivery {
	if rec.Attrs.IsControl() {
		return nil
	}
	env, err := readEnvelope(rec)
	if err != nil {
		r.skip(ctx, rec, err)
		return nil
	}
	ids, telemetry := r.ids, r.window.telemetry[slot]
	if telemetry {
		ids = r.latestIDs
	}
	if !ids.add(slot, env.ID) {
		r.hub.metrics.duplicates.Inc()
		return nil
	}
	deliveries, err := r.hub.cfg.Route(ctx, rec, &env)
	for i := 0; err == nil && i < len(deliveries); i++ {
		err = deliveries[i].check(telemetry)
	}
	if err != nil {
		r.skip(ctx, rec, err)
		return nil
	}
	return deliveries
}

func (r *logReader) skip(ctx context.Context, rec *kgo.Record, err error) {
	if ctx.Err() != nil {
		return
	}
	r.hub.metrics.skipped.Inc()
	r.hub.log.ErrorContext(ctx, "push skips a record", "topic", rec.Topic,
		"partition", rec.Partition, "offset", rec.Offset, "error", err)
}

func readEnvelope(rec *kgo.Record) (event.Envelope, error) {
	header := func(i int) (string, []byte) { return rec.Headers[i].Key, rec.Headers[i].Value }
	place := fmt.Sprintf("%s/%d/%d", rec.Topic, rec.Partition, rec.Offset)
	return event.ReadHeaders(len(rec.Headers), header, rec.Timestamp, place)
}

// give hands a frame to everyone on ch. The hub's mutex is held.
func (h *Hub) give(ch *channel, f *frame) {
	for i := len(ch.conns) - 1; i >= 0; i-- { // detach moves the last one into the gap
		c := ch.conns[i]
		if c.personal == nil {
			h.offer(c, f.bytes, f.latest)
			continue
		}
		if b := h.personal(c, f); b != nil {
			h.offer(c, b, f.latest)
		}
		if f.last { // before, the client may have seen a later part already
			h.ahead(c)
		}
	}
}
