package api

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// A crowd of one caller's waits in its own line: another's request is next.
func TestOneCallersLineDoesNotHoldUpAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShares(100, 2, 2)
		for range 2 {
			if !s.take(t.Context(), "flood") {
				t.Fatal("refused")
			}
		}
		let := make(chan string, 200)
		wait := func(caller string) {
			go func() {
				if s.take(t.Context(), caller) {
					let <- caller
				}
			}()
			synctest.Wait() // it is in the line
		}
		for range 50 {
			wait("flood")
		}
		wait("calm")
		wait("calm")
		var order []string
		for range 4 {
			s.give("flood")
			order = append(order, <-let)
		}
		if order[0] != "flood" || order[1] != "calm" || order[3] != "calm" {
			t.Errorf("in turn: %v", order)
		}
		s.give("calm")
		s.give("calm")
		for range 48 {
			if caller := <-let; caller != "flood" {
				t.Error(caller)
			}
			s.give("flood")
		}
	})
}

func TestOneCallerNeverHasAllPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShares(100, 4, 3)
		let := make(chan bool, 10)
		for range 10 {
			go func() { let <- s.take(t.Context(), "flood") }()
		}
		synctest.Wait()
		if len(let) != 3 {
			t.Errorf("%d at work", len(let))
		}
		if !s.take(t.Context(), "calm") { // at once, or synctest finds everybody waiting
			t.Error("refused")
		}
		for range 7 {
			s.give("flood")
		}
		s.give("calm")
		synctest.Wait()
		if len(let) != 10 {
			t.Errorf("%d were let in", len(let))
		}
	})
}

func TestWhoGivesUpLeavesTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newShares(3, 1, 1)
		s.take(t.Context(), "a")
		ctx, leave := context.WithCancel(t.Context())
		gone := make(chan bool)
		go func() { gone <- s.take(ctx, "a") }()
		go func() { gone <- s.take(t.Context(), "a") }()
		synctest.Wait()
		if s.take(t.Context(), "a") {
			t.Error("one more than its most")
		}
		leave()
		if <-gone {
			t.Error("let in without a place")
		}
		s.give("a")
		if !<-gone {
			t.Error("the other is not let in")
		}
		s.give("a")
		if len(s.held) != 0 || len(s.turns) != 0 || s.free != 1 {
			t.Errorf("left behind: %d callers, %d lines, %d places", len(s.held), len(s.turns), s.free)
		}
	})
}

// Whatever callers do, no place is lost and no bound broken.
func TestPlacesAreNeitherLostNorMadeUp(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		places, own := rapid.IntRange(1, 4).Draw(rt, "places"), rapid.IntRange(1, 4).Draw(rt, "own")
		synctest.Test(t, func(t *testing.T) {
			s, working := newShares(4, places, own), map[string]int{}
			let := make(chan string, 1000)
			for range rapid.IntRange(1, 40).Draw(rt, "steps") {
				caller := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "caller")
				if working[caller] > 0 && rapid.Bool().Draw(rt, "give") {
					working[caller]--
					s.give(caller)
				} else {
					patience := time.Duration(rapid.IntRange(1, 5).Draw(rt, "patience")) * time.Second
					go func() {
						ctx, cancel := context.WithTimeout(t.Context(), patience)
						defer cancel()
						if s.take(ctx, caller) {
							let <- caller
						}
					}()
				}
				time.Sleep(time.Second) // of the bubble's clock
				synctest.Wait()
				for len(let) > 0 {
					working[<-let]++
				}
				sum := 0
				for c, n := range working {
					if n > own {
						rt.Errorf("%d of %s at work", n, c)
					}
					sum += n
				}
				if sum+s.free != places {
					rt.Fatalf("%d at work and %d free of %d", sum, s.free, places)
				}
			}
			for c, n := range working {
				for range n {
					s.give(c)
				}
			}
			for {
				time.Sleep(10 * time.Second)
				synctest.Wait()
				if len(let) == 0 {
					break
				}
				s.give(<-let)
			}
			if s.free != places || len(s.held) != 0 || len(s.turns) != 0 {
				rt.Errorf("left behind: %d callers, %d lines, %d of %d places", len(s.held), len(s.turns), s.free, places)
			}
		})
	})
}

func TestPaceIsKeptAndBounded(t *testing.T) {
	p, now := newPace(10, 20), time.Now()
	taken := 0
	for range 100 {
		if p.take("a", now) == 0 {
			taken++
		}
	}
	if wait := p.take("a", now); taken != 20 || wait < 90*time.Millisecond || wait > 101*time.Millisecond {
		t.Errorf("%d at once, then wait %s", taken, wait)
	}
	if p.take("b", now) != 0 {
		t.Error("another caller waits for the first")
	}
	for range 1000 {
		if now = now.Add(100 * time.Millisecond); p.take("a", now) != 0 {
			t.Fatal("refused at the rate")
		}
	}
	for i := range 3 * maxPaced {
		p.take(string(rune(i)), now)
	}
	if len(p.buckets) > maxPaced {
		t.Errorf("%d buckets", len(p.buckets))
	}
}
