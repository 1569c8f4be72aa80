package e2e

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/waybillhq/waybill/test/proc"
)

// Requests that a kill cut off, repeated under their keys until they are
// answered, have each made one order, with one event.
func TestRequestRepeatedThroughAKillMakesOneOrder(t *testing.T) {
	const keys = 24
	w := proc.Up(t)
	answers := &answers{at: *w, ids: map[string]string{}}
	var clients sync.WaitGroup
	for i := range keys {
		clients.Go(func() { answers.insist(t.Context(), "k"+strconv.Itoa(i), 6) })
	}
	eventually(t, "some are answered", func() bool { return answers.count() > keys })
	w.Kill() // while most are under way
	w.Start()
	clients.Wait()
	if answers.count() != 6*keys || len(answers.differ) > 0 {
		t.Errorf("%d answers, of more than one order to a key: %v", answers.count(), answers.differ)
	}
	if n := stored(t, w); n != keys {
		t.Errorf("%d orders of %d keys", n, keys)
	}
	eventually(t, "the read model counts them", func() bool { return counts(t, w)["CREATED"] == keys })
	events := logged(t, w)
	if len(events) != keys {
		t.Errorf("events of %d orders, want %d", len(events), keys)
	}
	for id, facts := range events {
		if len(facts) != 1 {
			t.Errorf("order %s: %v", id, facts)
		}
	}
}

// answers is which order each key was answered with.
type answers struct {
	at proc.Waybill // a copy: a restart writes to the original

	mu     sync.Mutex
	n      int
	ids    map[string]string
	differ []string
}

// insist sends a creation under key until it was answered n times.
func (a *answers) insist(ctx context.Context, key string, n int) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for n > 0 && ctx.Err() == nil {
		status, body, err := a.at.Request(ctx, http.MethodPost, "/v1/orders", proc.Order, "Idempotency-Key", key)
		var o order
		if err != nil || status != http.StatusCreated || json.Unmarshal(body, &o) != nil {
			<-tick.C
			continue
		}
		n--
		a.note(key, o.ID)
	}
}

func (a *answers) note(key, id string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n++
	if first, again := a.ids[key]; again && first != id {
		a.differ = append(a.differ, key)
	}
	a.ids[key] = id
}

func (a *answers) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n
}
