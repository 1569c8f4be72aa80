package saga

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/saga/contracts"
)

// turn is what a service is asked for.
type turn struct {
	trip, step string
	direction  contracts.Direction
}

// fates are trips and what is to become of them.
type fates struct {
	want   map[string]State
	events []event.Data // that services publish, in the end
	answer map[turn]event.Data
}

func (f *fates) add(k string, want State, events ...event.Data) {
	f.want[k] = want
	f.events = append(f.events, events...)
	for _, e := range events {
		at := turn{k, "mail", contracts.DirectionForward}
		switch e.(type) {
		case tripRequested:
			continue
		case seatTaken, seatRefused:
			at.step = "seat"
		case cardCharged, cardRefused:
			at.step = "charge"
		case seatFreed:
			at.step, at.direction = "seat", contracts.DirectionBack
		case cardRefunded:
			at.step, at.direction = "charge", contracts.DirectionBack
		}
		f.answer[at] = e
	}
}

// draw makes a trip of each kind that there is, at random.
func (f *fates) draw(r *rand.Rand, k string) {
	requested, taken, charged := tripRequested{k, 1}, seatTaken{k, 1}, cardCharged{k, 1}
	switch r.IntN(5) {
	case 0:
		f.add(k, Compensated, requested, seatRefused{k, 1})
	case 1:
		f.add(k, Compensated, requested, taken, cardRefused{k, 1}, seatFreed{k, 1})
	case 2:
		f.add(k, Compensated, requested, taken, charged, mailRefused{k, 1}, cardRefunded{k, 1}, seatFreed{k, 1})
	case 3:
		f.add(k, Compensated, requested, taken, charged, tripCancelled{k, 0}, cardRefunded{k, 1}, seatFreed{k, 1})
	default:
		f.add(k, Completed, requested, taken, charged, ticketMailed{k, 1})
	}
}

// serve answers what is asked for, three times in ten not.
func (w *world) serve(r *rand.Rand, f *fates, heard map[string]bool) {
	w.t.Helper()
	for _, p := range w.published("") {
		if heard[p.ID.String()] {
			continue
		}
		heard[p.ID.String()] = true
		if e := f.answer[turn{p.overdue.Key, p.overdue.Step, p.overdue.Direction}]; e != nil && r.IntN(10) >= 3 {
			w.publish(e)
		}
	}
}

// operate resumes what needs an operator.
func (w *world) operate() {
	w.t.Helper()
	page, err := List(w.t.Context(), w.db, Filter{Tenant: w.tenant, State: NeedsOperator})
	w.must(err)
	for _, in := range page.Instances {
		if _, err := Resume(w.t.Context(), w.db, in.Ref, Ask{By: "ana"}); err != nil && !contains(err, ErrRefused.Error()) {
			w.t.Fatal(err)
		}
	}
}

// A thousand trips at once, before two observers. Services refuse; their events
// come late, in any order, some of them twice, and one in ten is lost until it
// is asked for, which may take several times and an operator. Each trip ends as
// what happened to it says.
func TestAThousandInstancesEndRight(t *testing.T) {
	w := newWorld(t)
	w.patience = 8 * time.Minute // five thousand transactions, and the waits for what was lost
	w.observe(time.Second)
	w.observe(time.Second)
	r := rand.New(rand.NewPCG(1, 2))
	f := &fates{want: map[string]State{}, answer: map[turn]event.Data{}}
	for i := range 1000 {
		f.draw(r, fmt.Sprint("trip-", i))
	}
	var sent []event.Data
	for _, e := range f.events {
		if _, begins := e.(tripRequested); begins || r.IntN(10) > 0 {
			sent = append(sent, e)
		}
	}
	for _, e := range slices.Clone(sent) {
		if r.IntN(20) == 0 {
			sent = append(sent, e)
		}
	}
	r.Shuffle(len(sent), func(i, j int) { sent[i], sent[j] = sent[j], sent[i] })
	w.publish(sent...)
	heard := map[string]bool{}
	w.until("all have ended", func() bool {
		w.serve(r, f, heard)
		w.operate()
		return w.number(`SELECT count(*) FROM saga.instances WHERE ended_at IS NOT NULL AND key LIKE 'trip-%'`) == 1000 &&
			w.number(`SELECT count(*) FROM saga.entries WHERE what = 'started'`) >= 1000
	})
	w.until("each as what happened to it says", func() bool {
		w.serve(r, f, heard)
		page, err := List(t.Context(), w.db, Filter{Tenant: w.tenant, Limit: 1000})
		w.must(err)
		return !slices.ContainsFunc(page.Instances, func(in Instance) bool { return in.State != f.want[in.Key] })
	})
	if len(heard) == 0 {
		t.Error("nothing was asked for")
	}
}
