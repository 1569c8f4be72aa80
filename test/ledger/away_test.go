package ledger

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/waybillhq/waybill/broker/brokertest"
)

// The broker is away while more is written than the relay may hold. The relay
// waits, in bounded memory, and then publishes it all.
func TestBrokerAwayIsWaitedFor(t *testing.T) {
	if brokertest.Kafka() {
		t.Skip("the Kafka is shared, and stays")
	}
	beside(t)
	away, events := 3*time.Second, 12_000
	if wholeRun() {
		away, events = 15*time.Second, 120_000
	}
	h := newHouse(t, modes[0])
	r := h.startRelay()
	h.begin()
	w := h.write(seed(t), 4)
	h.flows("before")
	before := memory(t, r)

	h.broker.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), away)
	defer cancel()
	w.bulk(ctx, events/2)
	half := memory(t, r)
	w.bulk(ctx, events-events/2)
	<-ctx.Done()
	full := memory(t, r)
	h.must(h.broker.TryStart())
	w.stop()
	h.reckon(w)
	h.atRest()
	t.Logf("the relay's memory: %d MiB before, %d and %d MiB with half and all of %d events waiting, at most %d MiB",
		before>>20, half>>20, full>>20, events, peak(t, r)>>20)
	if p := peak(t, r); p > 512<<20 {
		t.Errorf("the relay took up to %d MiB", p>>20)
	}
}

// bulk writes n events in transactions of a thousand.
func (w *writers) bulk(ctx context.Context, n int) {
	const each = 1000
	var wg sync.WaitGroup
	for i := range 2 {
		wg.Go(func() {
			for j := 0; j < n/each/2 && ctx.Err() == nil; j++ {
				w.mu.Lock()
				name := fmt.Sprintf("bulk-%d-%d", i, len(w.attempts))
				w.mu.Unlock()
				a := w.transaction(plan{keys: []string{"bulk"}, events: each}, name, nil)
				w.mu.Lock()
				w.attempts = append(w.attempts, a)
				w.mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// memory is what the relay has resident, in bytes.
func memory(t *testing.T, r *relay) int64 { return status(t, r, "VmRSS:") }

func peak(t *testing.T, r *relay) int64 { return status(t, r, "VmHWM:") }

func status(t *testing.T, r *relay, name string) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.process.Process()))
	if err != nil {
		t.Skipf("memory is read from /proc: %v", err)
	}
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); len(f) == 3 && f[0] == name {
			kib, err := strconv.ParseInt(f[1], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	t.Fatalf("no %s in the process' status", name)
	return 0
}
