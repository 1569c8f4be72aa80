package queue

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is what a queue of groups must look like from outside.
type model struct {
	groups map[string][]string // bodies not done, in the order of sending
	held   map[string]Delivery // by body
	stale  []string            // receipts that were good once
	tries  map[string]int
	dead   map[string]bool
}

const modelLimit = 3

// Whatever happens, of each group one message is on its way at a time, it is
// the first of those not done, and only its latest receipt is good.
func TestGroupsKeepTheirOrderWhateverHappens(t *testing.T) {
	w := newWorld(t)
	n := 0
	rapid.Check(t, func(r *rapid.T) {
		n++
		name := fmt.Sprint("q", n)
		q := w.queue(name, Settings{MaxDeliveries: modelLimit, MaxLength: 1000})
		m := &model{groups: map[string][]string{}, held: map[string]Delivery{}, tries: map[string]int{}, dead: map[string]bool{}}
		handles := []*Queue{q, New(w.db, Config{Name: name})} // two processes, as it were
		sent := 0
		pick := func(r *rapid.T) (string, bool) {
			all := slices.Sorted(maps.Keys(m.held))
			if len(all) == 0 {
				return "", false
			}
			return rapid.SampledFrom(all).Draw(r, "message"), true
		}
		r.Repeat(map[string]func(*rapid.T){
			"send": func(r *rapid.T) {
				var batch []Message
				for range rapid.IntRange(1, 4).Draw(r, "messages") {
					g := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "group")
					sent++
					body := fmt.Sprint(g, sent)
					m.groups[g] = append(m.groups[g], body)
					batch = append(batch, Message{Body: []byte(body), Group: g})
				}
				w.send(rapid.SampledFrom(handles).Draw(r, "handle"), batch...)
			},
			"receive": func(r *rapid.T) {
				for _, d := range w.receive(rapid.SampledFrom(handles).Draw(r, "handle"), rapid.IntRange(1, 5).Draw(r, "max")) {
					m.received(r, d)
				}
			},
			"ack": func(r *rapid.T) {
				if body, ok := pick(r); ok {
					w.ack(q, m.held[body])
					m.done(body)
				}
			},
			"nack": func(r *rapid.T) {
				if body, ok := pick(r); ok {
					w.nack(q, 0, m.held[body])
					m.back(body)
				}
			},
			"expire": func(r *rapid.T) {
				if body, ok := pick(r); ok {
					w.lapse(m.held[body])
					if _, err := q.returnDue(t.Context(), 0); err != nil {
						r.Fatal(err)
					}
					m.back(body)
				}
			},
			"use an old receipt": func(r *rapid.T) {
				if len(m.stale) > 0 {
					old := rapid.SampledFrom(m.stale).Draw(r, "receipt")
					if q.Ack(t.Context(), w.db, old) == nil || q.Nack(t.Context(), w.db, 0, "", old) == nil {
						r.Fatal("an old receipt was good")
					}
				}
			},
		})
		// Whatever state that left: everything not dead can be worked off.
		for body := range m.held {
			w.ack(q, m.held[body])
			m.done(body)
		}
		deadline := time.Now().Add(2 * time.Minute)
		for len(slices.Concat(slices.Collect(maps.Values(m.groups))...)) > 0 {
			if time.Now().After(deadline) {
				r.Fatalf("left in the queue for ever: %v", m.groups)
			}
			for _, d := range w.receive(q, 10) {
				m.received(r, d)
				w.ack(q, d)
				m.done(string(d.Body))
			}
		}
		if s := w.stats(q); s.Dead != int64(len(m.dead)) || s.Ready+s.Waiting+s.InFlight+s.Delayed != 0 {
			r.Fatalf("%+v, want %d dead", s, len(m.dead))
		}
	})
}

func (m *model) received(r *rapid.T, d Delivery) {
	body := string(d.Body)
	if _, twice := m.held[body]; twice {
		r.Fatalf("%s is with two workers", body)
	}
	if left := m.groups[d.Group]; len(left) == 0 || left[0] != body {
		r.Fatalf("%s came, of %v", body, left)
	}
	m.tries[body]++
	if d.Deliveries != m.tries[body] || d.Deliveries > modelLimit {
		r.Fatalf("%s: delivery %d, want %d", body, d.Deliveries, m.tries[body])
	}
	m.held[body] = d
}

func (m *model) done(body string) {
	d := m.held[body]
	m.stale = append(m.stale, d.Receipt)
	delete(m.held, body)
	m.groups[d.Group] = slices.DeleteFunc(m.groups[d.Group], func(b string) bool { return b == body })
}

// back is a message that was given back, or whose lease ended.
func (m *model) back(body string) {
	if m.tries[body] == modelLimit {
		m.dead[body] = true
		m.done(body)
		return
	}
	m.stale = append(m.stale, m.held[body].Receipt)
	delete(m.held, body)
}
