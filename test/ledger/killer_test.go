package ledger

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/broker/brokertest"
)

// kill kills n processes at random moments: some while the log moves, between
// commit, publication and mark, some while others are still coming back.
func (h *house) kill(n int, r *rand.Rand) {
	h.t.Helper()
	struck := map[string]int{}
	ctx, cancel := context.WithCancel(h.t.Context())
	var checkpoints sync.WaitGroup
	defer checkpoints.Wait()
	defer cancel()
	other := rand.New(rand.NewPCG(r.Uint64(), 0))
	checkpoints.Go(func() { h.checkpoints(ctx, other) })
	began := time.Now()
	bound := began.Add(time.Duration(n)*6*time.Second + time.Minute)
	for done := 0; done < n; {
		if time.Now().After(bound) {
			h.t.Fatalf("only %d of %d kills within %s: %v", done, n, time.Since(began), struck)
		}
		pause(h.t.Context(), upTo(r, 500*time.Millisecond))
		if r.IntN(2) == 0 {
			h.awaitMotion(bound)
			pause(h.t.Context(), upTo(r, 500*time.Millisecond))
		}
		m := h.victim(r)
		if m == nil {
			pause(h.t.Context(), 20*time.Millisecond) // all are away
			continue
		}
		away := upTo(r, 300*time.Millisecond)
		if r.IntN(3) == 0 { // the others die without it, with much on its way
			away = upTo(r, 2*time.Second)
		}
		ok, err := m.strike(h.t.Context(), away)
		h.must(err)
		if !ok {
			continue
		}
		done++
		struck[m.name]++
		if done%20 == 0 {
			h.t.Logf("%d kills in %s, %d records: %v", done, time.Since(began).Round(time.Second), h.tail.count(), struck)
		}
	}
	h.t.Logf("%d kills in %s: %v", n, time.Since(began).Round(time.Second), struck)
}

// upTo is any duration below limit, the shorter the likelier.
func upTo(r *rand.Rand, limit time.Duration) time.Duration {
	x := r.Float64()
	return time.Duration(x * x * float64(limit))
}

// awaitMotion waits until the log moves: what nobody works on has nothing to
// lose. Not for long, since that is another's claim.
func (h *house) awaitMotion(bound time.Time) {
	seen := h.tail.count()
	for late := time.Now().Add(10 * time.Second); h.tail.count() == seen && time.Now().Before(late) && time.Now().Before(bound); {
		pause(h.t.Context(), 5*time.Millisecond)
	}
}

// checkpoints are made now and then, as a server of some use makes them. A slot
// keeps its position over a crash only as of the last one: without any, a crash
// of Postgres would have the relay read again, and mend, what it lost before.
func (h *house) checkpoints(ctx context.Context, r *rand.Rand) {
	for ctx.Err() == nil {
		pause(ctx, 100*time.Millisecond+upTo(r, time.Second))
		conn, err := pgx.Connect(ctx, h.database.server().AdminDSN())
		if err != nil {
			continue // it is away
		}
		_, _ = conn.Exec(ctx, `CHECKPOINT`)
		_ = conn.Close(ctx)
	}
}

// victim is one of those that are up, nil if none is: the relay at work more
// often than not. In the house of a real Kafka the broker, which there serves
// the registry alone, seldom.
func (h *house) victim(r *rand.Rand) *member {
	var up []*member
	add := func(m *member, weight int) {
		if m.up.Load() {
			up = append(up, slices.Repeat([]*member{m}, weight)...)
		}
	}
	add(h.members[0], 3)
	if brokertest.Kafka() {
		add(h.members[1], 1)
	} else {
		add(h.members[1], 3)
	}
	for _, r := range h.relays {
		if r.works() {
			add(r.member, 6)
		} else {
			add(r.member, 1)
		}
	}
	if len(up) == 0 {
		return nil
	}
	return up[r.IntN(len(up))]
}

// works tells by what the relay printed last whether it is the one at work.
func (r *relay) works() bool {
	s := r.log.text()
	waits := strings.LastIndex(s, standingBy)
	return strings.LastIndex(s, "reading the outbox") > waits || strings.LastIndex(s, "polling the outbox") > waits
}
