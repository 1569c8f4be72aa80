package api

import (
	"context"
	"strconv"
	"strings"
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

func TestUnlessSomebodySaysSoOneCallerHasNotAllPlaces(t *testing.T) {
	for places := 2; places <= 64; places++ {
		if own := ownOf(places); own < 1 || own >= places {
			t.Errorf("%d of %d", own, places)
		}
	}
	if err := checkOwn(33, 32); err == nil || !strings.Contains(err.Error(), "api.at_work_per_caller") {
		t.Errorf("33 of 32: %v", err)
	}
	if ownOf(32) != 12 || ownOf(1) != 1 {
		t.Errorf("%d of 32, %d of 1", ownOf(32), ownOf(1))
	}
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
	p, now := newPace(10, 20, 10, nil), time.Now()
	at, last := 0, time.Duration(0)
	for range 100 {
		if wait, ok := p.take("a", false, now); ok {
			at, last = at+1, wait
		}
	}
	if wait, ok := p.take("a", false, now); at != 21 || last < 90*time.Millisecond || ok || wait < 190*time.Millisecond {
		t.Errorf("%d at once, the last after %s, then wait %s", at, last, wait)
	}
	if wait, ok := p.take("b", false, now); wait != 0 || !ok {
		t.Error("another caller waits for the first")
	}
	for range 1000 {
		now = now.Add(100 * time.Millisecond)
		if _, ok := p.take("a", false, now); !ok {
			t.Fatal("refused at the rate")
		}
	}
	for i := range 3 * maxPaced {
		p.take(strconv.Itoa(i), false, now)
	}
	if len(p.buckets) > maxPaced {
		t.Errorf("%d buckets", len(p.buckets))
	}
}

// Two that come at once are let in one after the other, at the rate.
func TestWhoIsTooQuickIsSlowedDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, began := newPace(20, 1, 20, nil), time.Now()
		for n, want := range []time.Duration{0, 50 * time.Millisecond, 100 * time.Millisecond} {
			if refused := p.keep(t.Context(), "a", false); refused != 0 || time.Since(began).Round(time.Millisecond) != want {
				t.Errorf("request %d is let in after %s, refused for %s", n, time.Since(began), refused)
			}
		}
	})
}
