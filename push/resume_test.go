package push_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/push"
)

// client is somebody who keeps losing the connection.
type client struct {
	t      *rapid.T
	cursor string
	last   map[string]thing
	got    int
}

// take checks that m is what comes next of its key.
func (c *client) take(t testing.TB, m message) {
	if m.event != "moved" {
		c.t.Fatalf("after %d messages: %q %s", c.got, m.event, m.data)
	}
	d := m.thing(t)
	was, known := c.last[d.Key]
	inside := known && was.Part+1 < was.Parts
	ok := d.N == was.N+1 && d.Part == 0 && !inside || inside && d.N == was.N && d.Part == was.Part+1
	if !ok {
		c.t.Fatalf("key %s: message %d part %d after %d part %d of %d", d.Key, d.N, d.Part, was.N, was.Part, was.Parts)
	}
	c.last[d.Key], c.cursor = d, m.id
	c.got++
}

// plan of events over a few keys, and how many messages they make.
func plan(t *rapid.T, w *world, channel string) (records []*kgo.Record, messages int) {
	n := map[string]int{}
	for range rapid.IntRange(1, 60).Draw(t, "events") {
		key := fmt.Sprintf("%s-%d", channel, rapid.IntRange(0, 3).Draw(t, "key"))
		n[key]++
		parts := max(1, rapid.IntRange(-2, 3).Draw(t, "parts"))
		rec := w.record(channel, thing{Key: key, N: n[key], Parts: parts})
		records = append(records, rec)
		messages += parts
		if rapid.IntRange(0, 9).Draw(t, "again") == 0 {
			records = append(records, &kgo.Record{Topic: rec.Topic, Key: rec.Key, Value: rec.Value, Headers: rec.Headers})
		}
	}
	return records, messages
}

// However often a client loses its connection, and to whichever hub it comes
// back while events are being published, it has received all of them once each
// in the order of each key.
func TestClientMissesNothingAndSeesNothingTwice(t *testing.T) {
	w := newWorld(t, 3)
	hubs := []*site{w.site(t, nil), w.site(t, nil)}
	round := 0
	rapid.Check(t, func(rt *rapid.T) {
		round++
		channel := fmt.Sprintf("c%d", round)
		records, messages := plan(rt, w, channel)
		c := &client{t: rt, last: map[string]thing{}}
		s, cursor := hubs[0].fresh(t, channel)
		c.cursor = cursor
		s.close()

		var publishing sync.WaitGroup
		publishing.Go(func() {
			for _, r := range records {
				w.publish(t, r)
			}
		})
		defer publishing.Wait()
		for c.got < messages {
			hub := hubs[rapid.IntRange(0, len(hubs)-1).Draw(rt, "hub")]
			take := rapid.IntRange(1, 12).Draw(rt, "take")
			s := hub.open(t, channel, c.cursor)
			for i := 0; i < take && c.got < messages; i++ {
				c.take(t, s.next())
			}
			s.close()
		}
		publishing.Wait()
		end := w.record(channel, thing{Key: "end", N: 1})
		w.publish(t, end)
		c.take(t, hubs[1].open(t, channel, c.cursor).next())
	})
}

// The same across restarts: nobody is connected while events are published,
// and the hub that the client comes back to has never seen it.
func TestClientMissesNothingAcrossRestarts(t *testing.T) {
	w := newWorld(t, 3)
	s := w.site(t, nil)
	c, cursor := s.fresh(t, "a")
	c.close()
	n := 0
	got := map[string]int{}
	for range 4 {
		s.stop()
		for range 30 {
			n++
			for _, key := range []string{"x", "y", "z", "u"} {
				w.say(t, "a", key, n)
			}
		}
		s = w.site(t, nil)
		for left := 4 * 30; left > 0; { // leaves in the midst of the replay
			c := s.open(t, "a", cursor)
			for i := 0; i < 7 && left > 0; i++ {
				m := c.next()
				if m.event == push.EventReset {
					t.Fatal("reset")
				}
				d := m.thing(t)
				if d.N != got[d.Key]+1 {
					t.Fatalf("%s %d after %d", d.Key, d.N, got[d.Key])
				}
				got[d.Key], cursor = d.N, m.id
				left--
			}
			c.close()
		}
	}
}
