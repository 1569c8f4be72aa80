package api

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// town is a pace under a clock of its own, with merchants who send.
type town struct {
	p      *pace
	delays *Delays
	now    time.Time
}

func newTown() *town {
	delays := NewDelays()
	return &town{p: newPace(700, 350, 50, delays), delays: delays, now: time.Now()}
}

// send has each merchant send so many requests a second, evenly, for some time,
// while events take what took says, and counts what is let in of each.
func (w *town) send(t *rapid.T, d time.Duration, perSecond map[string]int, took func() time.Duration) map[string]int {
	let := map[string]int{}
	const step = 10 * time.Millisecond
	due := map[string]float64{}
	for end := w.now.Add(d); w.now.Before(end); w.now = w.now.Add(step) {
		for who, n := range perSecond {
			for due[who] += float64(n) * step.Seconds(); due[who] >= 1; due[who]-- {
				if _, ok := w.p.take(who, true, w.now); ok {
					let[who]++
				}
			}
		}
		w.delays.Add(took())
		if c := w.p.crowd; c.pace < c.assured || c.pace > c.most {
			t.Fatalf("pace %v, want %v to %v", c.pace, c.assured, c.most)
		}
	}
	return let
}

func always(d time.Duration) func() time.Duration { return func() time.Duration { return d } }

func TestAMerchantAloneHasTheWholeRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTown()
		took := rapid.SampledFrom([]time.Duration{time.Millisecond, time.Second}).Draw(t, "took") // it delays itself
		if let := w.send(t, 10*time.Second, map[string]int{"a": 600}, always(took)); let["a"] < 5900 {
			t.Fatalf("%d of 6000 let in", let["a"])
		}
	})
}

// Whatever the others send and however late events are, who sends what is
// assured is never refused.
func TestWhatIsAssuredIsLetIn(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTown()
		took := rapid.Custom(func(t *rapid.T) time.Duration {
			return time.Duration(rapid.IntRange(0, 60).Draw(t, "ms")) * time.Millisecond
		})
		asked := rapid.IntRange(1, 49).Draw(t, "calm")
		let := w.send(t, 5*time.Second, map[string]int{"calm": asked, "flood": rapid.IntRange(50, 2000).Draw(t, "flood")},
			func() time.Duration { return took.Draw(t, "took") })
		if let["calm"] < asked*5-1 {
			t.Fatalf("%d let in of %d a second in 5 s", let["calm"], asked)
		}
	})
}

// A flood beside another merchant begins with what is assured, rises while there
// is room, and falls when events are late.
func TestAFloodHasWhatThereIsRoomFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newTown()
		both := map[string]int{"calm": 10, "flood": 1000}
		w.send(t, time.Second, map[string]int{"calm": 10}, always(time.Millisecond))
		if n := w.send(t, time.Second, both, always(20*time.Millisecond))["flood"]; n > 50+atOnce+10 {
			t.Fatalf("%d in the first second, while events are neither quick nor late", n)
		}
		quick := w.send(t, 20*time.Second, both, always(time.Millisecond))["flood"]
		last := w.send(t, time.Second, both, always(time.Millisecond))["flood"]
		if quick < 5000 || last < 690 {
			t.Fatalf("%d in 20 s with room, %d in the last", quick, last)
		}
		w.send(t, 15*time.Second, both, always(40*time.Millisecond))
		if n := w.send(t, time.Second, both, always(40*time.Millisecond))["flood"]; n > 60 {
			t.Fatalf("%d a second though events are late", n)
		}
		if n := w.send(t, companyIn+time.Second, map[string]int{"flood": 600}, always(40*time.Millisecond))["flood"]; n < 600 {
			t.Fatalf("%d in %s and a second alone: the last second has the whole rate", n, companyIn)
		}
	})
}

// An outage says nothing about room.
func TestWhatWaitedForAnOutageIsNoCrowd(t *testing.T) {
	d := NewDelays()
	for range 100 {
		d.Add(time.Minute)
	}
	if c := d.since(); c.tooMany() || c.room() {
		t.Errorf("%+v", c)
	}
	for i := range enough {
		if c := d.since(); c.all > 0 {
			t.Fatalf("judged after %d events", i)
		}
		d.Add(time.Millisecond)
	}
	if c := d.since(); c.tooMany() || !c.room() {
		t.Errorf("%+v", c)
	}
	for range enough - 3 {
		d.Add(time.Millisecond)
	}
	d.Add(time.Second)
	d.Add(time.Second)
	d.Add(time.Second)
	if c := d.since(); !c.tooMany() || c.room() {
		t.Errorf("%+v", c)
	}
}
