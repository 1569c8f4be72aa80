package webhook

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
)

func aLane(r *rota, tenant string, limit float64, proven bool) *lane {
	l := &lane{laneKey: laneKey{tenant, uuid.New()}, pace: pace{most: limit, limit: limit}, proven: proven, held: map[uuid.UUID]bool{}}
	r.add(l)
	return l
}

func (l *lane) queue(r *rota, n, size int, fresh bool) {
	for range n {
		j := &job{lane: l, id: event.NewID(), fresh: fresh, body: make([]byte, size)}
		if fresh {
			l.fresh = append(l.fresh, j)
		} else {
			l.again = append(l.again, j)
		}
	}
	r.ready(l.share)
}

// A thousand tenants, one of which has a thousand times as much: it gets its turn,
// and no more.
func TestATenantWithMuchDoesNotStandBeforeOthers(t *testing.T) {
	now := time.Now()
	r := newRota(50, 25, 50)
	aLane(r, "loud", 50, true).queue(r, 100_000, 10, true)
	var quiet []*lane
	for i := range 1000 {
		l := aLane(r, fmt.Sprint("quiet ", i), 50, true)
		l.queue(r, quantum, 10, true)
		quiet = append(quiet, l)
	}
	sent := map[string]int{}
	for range 1001 * quantum {
		j := r.next(now)
		if j == nil {
			t.Fatal("nothing is sent")
		}
		sent[j.lane.tenant]++
		r.done(j)
	}
	for _, l := range quiet {
		if sent[l.tenant] != quantum {
			t.Errorf("%s sent %d of %d", l.tenant, sent[l.tenant], quantum)
		}
	}
	if sent["loud"] > 2*quantum {
		t.Errorf("loud sent %d in the time others sent %d", sent["loud"], quantum)
	}
}

func TestLargeBodiesCountForMore(t *testing.T) {
	now := time.Now()
	r := newRota(10, 10, 10)
	aLane(r, "large", 10, true).queue(r, 1000, 7<<12, true) // costs 8
	aLane(r, "small", 10, true).queue(r, 1000, 10, true)
	sent := map[string]int{}
	for range 900 {
		j := r.next(now)
		sent[j.lane.tenant]++
		r.done(j)
	}
	if sent["small"] < 7*sent["large"] || sent["large"] < sent["small"]/9 {
		t.Errorf("%v, want eight small for a large", sent)
	}
}

func TestRetriesNeverTakeAllThereIs(t *testing.T) {
	now := time.Now()
	r := newRota(100, 40, 1000)
	for i := range 50 {
		aLane(r, fmt.Sprint("retries ", i), 10, true).queue(r, 10, 10, false)
		aLane(r, fmt.Sprint("unproven ", i), 10, false).queue(r, 10, 10, true)
	}
	var under []*job
	for j := r.next(now); j != nil; j = r.next(now) {
		under = append(under, j)
	}
	if len(under) != 40 {
		t.Fatalf("%d under way, want the second budget's 40", len(under))
	}
	l := aLane(r, "proven", 100, true)
	l.queue(r, 60, 10, true)
	n := 0
	for j := r.next(now); j != nil; j = r.next(now) {
		if j.lane != l {
			t.Fatal("something else was sent")
		}
		n++
	}
	if n != 60 {
		t.Errorf("%d first tries are under way beside them, want 60", n)
	}
	r.done(under[0]) // room in the second budget: who waited for it goes on
	if j := r.next(now); j == nil || !j.again {
		t.Errorf("%v", j)
	}
}

func TestRetriesOfALaneGetEveryFourthTurn(t *testing.T) {
	now := time.Now()
	r := newRota(100, 100, 100)
	l := aLane(r, "a", 100, true)
	l.queue(r, 40, 10, true)
	l.queue(r, 40, 10, false)
	again := 0
	for range 40 {
		j := r.next(now)
		if !j.fresh {
			again++
		}
		r.done(j)
	}
	if again != 10 {
		t.Errorf("%d of 40 were retries", again)
	}
}

func TestABrokenEndpointIsCalledOnceAtATime(t *testing.T) {
	now := time.Now()
	r := newRota(100, 50, 100)
	l := aLane(r, "a", 32, true)
	l.queue(r, 10, 10, true)
	for range breakAfter {
		l.health.failed(now, 0, func(int64) int64 { return 0 })
	}
	if r.next(now) != nil {
		t.Fatal("it is called while its breaker is open")
	}
	later := l.health.openUntil
	if d := later.Sub(now); d < restFirst/2 || d > restFirst {
		t.Errorf("it rests for %s", d)
	}
	r.ready(l.share)
	probe := r.next(later)
	if probe == nil || r.next(later) != nil {
		t.Fatal("want one probe")
	}
	l.health.failed(later, 0, random)
	r.done(probe)
	if r.next(later.Add(restFirst/2)) != nil || !l.health.openUntil.After(later.Add(restFirst-time.Nanosecond)) {
		t.Error("a probe that fails is followed by no longer rest")
	}
	l.health.succeeded()
	r.ready(l.share)
	for i := range 9 {
		if r.next(later) == nil {
			t.Errorf("it answers, and %d of 9 are sent", i)
		}
	}
}

// Whatever happens, no bound is passed and all is sent in the end.
func TestNoBoundIsEverPassed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now()
		most := rapid.IntRange(1, 20).Draw(t, "most")
		r := newRota(most, rapid.IntRange(1, most).Draw(t, "second"), rapid.IntRange(1, 10).Draw(t, "perTenant"))
		var lanes []*lane
		for i := range rapid.IntRange(1, 6).Draw(t, "lanes") {
			lanes = append(lanes, aLane(r, fmt.Sprint(i%3), float64(rapid.IntRange(1, 8).Draw(t, "limit")), rapid.Bool().Draw(t, "proven")))
		}
		queued, sent := 0, 0
		var under []*job
		send := func() bool {
			j := r.next(now)
			if j == nil {
				return false
			}
			under = append(under, j)
			again := 0
			for _, u := range under {
				if u.again {
					again++
				}
			}
			s := j.lane.share
			if len(under) > r.most || again > r.second || s.inFlight > r.perTenant || j.lane.inFlight > int(j.lane.pace.limit) {
				t.Fatalf("%d under way, %d again, %d of the tenant, %d of the endpoint", len(under), again, s.inFlight, j.lane.inFlight)
			}
			return true
		}
		done := func(i int) {
			r.done(under[i])
			under = append(under[:i], under[i+1:]...)
			sent++
		}
		t.Repeat(map[string]func(*rapid.T){
			"queue": func(t *rapid.T) {
				n := rapid.IntRange(1, 5).Draw(t, "n")
				rapid.SampledFrom(lanes).Draw(t, "lane").queue(r, n, rapid.IntRange(0, 100_000).Draw(t, "size"), rapid.Bool().Draw(t, "fresh"))
				queued += n
			},
			"send": func(*rapid.T) { send() },
			"done": func(t *rapid.T) {
				if len(under) > 0 {
					done(rapid.IntRange(0, len(under)-1).Draw(t, "which"))
				}
			},
		})
		for send() || len(under) > 0 {
			if len(under) > 0 {
				done(0)
			}
		}
		if sent != queued || r.inFlight != 0 || r.againInFlight != 0 {
			t.Fatalf("%d of %d sent, %d under way", sent, queued, r.inFlight)
		}
	})
}
