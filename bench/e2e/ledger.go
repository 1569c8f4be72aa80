package e2e

import (
	"context"
	"sync"
	"time"

	"github.com/waybillhq/waybill/bench/stat"
)

// ledger holds what was done against what was seen. Either may come first: the
// event of an order often overtakes the answer to its creation.
type ledger struct {
	mu      sync.Mutex
	orders  map[string]*fate
	ids     map[string]bool
	answers []time.Duration
	tracks  []time.Duration
	failure error
	from    time.Time // waits that began before are not counted
	pages   []string  // orders whose tracking page ended without its change
	count   struct{ failed, events, answered, duplicates int }
	news    chan struct{}
}

// fate is one order's.
type fate struct {
	due      time.Time // zero until its answer came
	asked    time.Time // when what is expected was answered
	seen     time.Time // its creation on the stream
	sequence int64     // highest seen
	expected int64     // highest that was answered

	reordered int // events that came out of order
}

func newLedger() *ledger {
	return &ledger{orders: map[string]*fate{}, ids: map[string]bool{}, news: make(chan struct{}, 1)}
}

// measure begins the measurement: what was done before is still watched for
// losses and the like, but its waits are forgotten.
func (l *ledger) measure(from time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from, l.answers, l.tracks = from, nil, nil
	l.count.answered, l.count.events = 0, 0
}

func (l *ledger) order(id string) *fate {
	f := l.orders[id]
	if f == nil {
		f = &fate{}
		l.orders[id] = f
	}
	return f
}

func (l *ledger) answered(id string, due, at time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.order(id)
	f.due, f.asked, f.expected = due, at, max(f.expected, 1)
	l.count.answered++
	l.answers = append(l.answers, at.Sub(due))
}

func (l *ledger) moved(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.order(id)
	f.asked, f.expected = time.Now(), 2
}

func (l *ledger) saw(m message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Sequence == 0 {
		return // no event of an order: where a courier is
	}
	l.count.events++
	if l.ids[m.ID] {
		l.count.duplicates++
		return
	}
	l.ids[m.ID] = true
	f := l.order(m.Subject)
	if m.Sequence <= f.sequence || m.Sequence != f.sequence+1 {
		f.reordered++
	}
	f.sequence = max(f.sequence, m.Sequence)
	if m.Sequence == 1 {
		f.seen = m.at
	}
	select {
	case l.news <- struct{}{}:
	default:
	}
}

func (l *ledger) tracked(took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tracks = append(l.tracks, took)
}

func (l *ledger) notTracked(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pages = append(l.pages, id)
}

func (l *ledger) failed(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count.failed++
	if l.failure == nil {
		l.failure = err
	}
}

// settle waits until nothing is outstanding, or patience is over.
func (l *ledger) settle(ctx context.Context, patience time.Duration) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for l.outstanding() > 0 {
		select {
		case <-l.news:
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (l *ledger) outstanding() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.orders {
		if f.expected > f.sequence {
			n++
		}
	}
	return n
}

// missing tells what was not seen: lost where the stream has gone on without it,
// unfinished where it may still come. Partitions do not keep step with each
// other, so that what overtakes by less than a moment says nothing.
func (l *ledger) missing(patience time.Duration) (lost, unfinished int) {
	var newest time.Time // of the orders that were seen
	for _, f := range l.orders {
		if !f.seen.IsZero() && f.due.After(newest) {
			newest = f.due
		}
	}
	for _, f := range l.orders {
		switch {
		case f.expected <= f.sequence:
		case newest.After(f.asked.Add(patience / 20)):
			lost++
		default:
			unfinished++
		}
	}
	for _, id := range l.pages {
		if l.order(id).sequence >= 2 { // the merchant's stream had it; otherwise it is counted above
			lost++
		}
	}
	return lost, unfinished
}

// figure is nil where there is nothing it could be of.
func figure(of []time.Duration, v float64) *float64 {
	if len(of) == 0 {
		return nil
	}
	return &v
}

func quantile(of []time.Duration, q float64) *float64 { return figure(of, stat.Quantile(of, q)) }

func (l *ledger) result(cfg Config, took time.Duration) Result {
	l.mu.Lock()
	defer l.mu.Unlock()
	lost, unfinished := l.missing(cfg.Patience)
	var waits []time.Duration
	reordered := 0
	for _, f := range l.orders {
		if !f.due.IsZero() { // others' orders may have begun before we looked
			reordered += f.reordered
		}
		if !f.due.IsZero() && !f.seen.IsZero() && !f.due.Before(l.from) {
			waits = append(waits, f.seen.Sub(f.due))
		}
	}
	r := Result{
		Name: "e2e", Rate: cfg.Rate, Orders: l.count.answered, Failed: l.count.failed, Events: l.count.events,
		PerSecond: float64(l.count.events) / took.Seconds(), OrdersPerSecond: float64(l.count.answered) / took.Seconds(),
		Mean: figure(waits, stat.Mean(waits)),
		P50:  quantile(waits, 0.5), P99: quantile(waits, 0.99), Max: quantile(waits, 1),
		AnswerP50: quantile(l.answers, 0.5), AnswerP99: quantile(l.answers, 0.99),
		Tracked: len(l.tracks), TrackedP50: quantile(l.tracks, 0.5), TrackedP99: quantile(l.tracks, 0.99),
		Unfinished: unfinished, Lost: lost, Reordered: reordered, Duplicates: l.count.duplicates,
	}
	if l.failure != nil {
		r.Failure = l.failure.Error()
	}
	return r
}
