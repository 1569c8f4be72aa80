package queue

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestUpkeepThatBecomesExpensiveTakesATenthOfTheTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p pace
		round := func(d time.Duration) {
			began := time.Now()
			time.Sleep(d)
			p.spent(began)
		}
		round(time.Hour) // a machine that stalled
		if time.Sleep(time.Second); !p.may(time.Second) {
			t.Error("one slow round is held against the next")
		}
		round(100 * time.Millisecond)
		round(100 * time.Millisecond)
		if time.Sleep(800 * time.Millisecond); p.may(0) {
			t.Error("too soon")
		}
		if time.Sleep(100 * time.Millisecond); !p.may(0) {
			t.Error("not in time")
		}
		round(time.Hour)
		round(time.Hour)
		if time.Sleep(longest); !p.may(0) {
			t.Error("left alone for ever")
		}
	})
}
