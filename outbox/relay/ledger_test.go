package relay

import (
	"context"
	"testing"
	"time"
)

// A partition stops while marks are being written: what is kept back behind it
// must not be confirmed with them, before the stop is written down.
func TestNothingIsConfirmedPastAStopThatIsNotNoted(t *testing.T) {
	l := newLedger(10, 1000, false)
	n := l.begin(10, time.Time{})
	if err := l.add(t.Context(), tag{commit: n, size: 1}); err != nil {
		t.Fatal(err)
	}
	l.commit(n, 20)
	b := &batch{Tags: []tag{{commit: n, size: 1}}}
	l.acknowledge(b)
	acked, stops, _ := l.take(nil) // the marker writes these
	l.stop(stop{place: place{topic: "t"}})
	l.commit(l.begin(30, time.Time{}), 40) // kept back
	if end := l.written(acked, stops); end > 20 {
		t.Fatalf("confirmed up to %s", end)
	}
	acked, stops, _ = l.take(nil)
	if end := l.written(acked, stops); end != 40 {
		t.Errorf("then up to %s", end)
	}
}

// While one transaction is not through, those behind it are kept in mind: so
// many and no more.
func TestTheLedgerIsBoundedInTransactions(t *testing.T) {
	l := newLedger(2, 1000, false)
	l.most = 50
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i := range 100 {
		if l.count == l.most {
			cancel() // the next one would wait for ever
		}
		n := l.begin(1, time.Time{})
		if err := l.add(ctx, tag{commit: n, size: 1}); err != nil {
			if i < 50 {
				t.Errorf("%v after %d", err, i)
			}
			return
		}
		l.commit(n, 2)
		if i > 0 { // the first one is held
			l.acknowledge(&batch{Tags: []tag{{commit: n, size: 1}}})
			acked, stops, _ := l.take(nil)
			l.written(acked, stops)
		}
	}
	t.Error("it takes more and more")
}
