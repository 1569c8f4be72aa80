package lag

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The log of these properties has a record every second from the epoch on.
func written(offset int64) time.Time { return time.Unix(1_700_000_000+offset, 0) }

func TestEstimatesLieBetweenWhatIsKnown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &past{}
		lowest := int64(1 << 40)
		for range rapid.IntRange(1, 200).Draw(t, "points") {
			offset := rapid.Int64Range(0, 10_000).Draw(t, "offset")
			lowest = min(lowest, offset)
			p.add(point{offset, written(offset)})
			p.end = max(p.end, offset+1)
		}
		if len(p.points) > maxPoints {
			t.Fatalf("%d points", len(p.points))
		}
		now := written(p.end)
		asked := rapid.Int64Range(0, p.end-1).Draw(t, "asked")
		got, ok := p.estimate(asked, now)
		if ok != (asked >= p.points[0].offset) || p.points[0].offset != lowest {
			t.Fatalf("known %v of %d, the first known is %d", ok, asked, lowest)
		}
		if d := got.Sub(written(asked)); ok && (d > 2*time.Second || d < -2*time.Second) {
			t.Fatalf("offset %d: %s off", asked, d)
		}
	})
}

func TestATimeOfTomorrowIsNotBelieved(t *testing.T) {
	now := time.Now()
	s := newStamps()
	for i, at := range []time.Time{now.Add(time.Hour), time.UnixMilli(0), time.UnixMilli(-1)} {
		s.keep(place{spot{"t", 0}, int64(i)}, stamp{time: at}, now)
	}
	if len(s.exact) != 0 {
		t.Errorf("%v", s.exact)
	}
	s.keep(place{spot{"t", 0}, 9}, stamp{time: now.Add(time.Second)}, now) // another machine's clock
	if len(s.exact) != 1 {
		t.Error("a clock that is a little ahead is no reason")
	}
}

func TestNothingToReadIsForgottenWhenThereIsMore(t *testing.T) {
	s, now := newStamps(), time.Now()
	where := place{spot{"t", 0}, 5}
	s.keep(where, stamp{empty: true, end: 6}, now)
	if _, _, empty, ok := s.at(where, 6, now); !ok || !empty {
		t.Error("forgotten too early")
	}
	if _, _, _, ok := s.at(where, 7, now); ok {
		t.Error("a later event would look as if it were none")
	}
}

func TestARateThatGoesBackIsUnknown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r rate
		at, n := time.Unix(0, 0), int64(1000)
		for range rapid.IntRange(1, 50).Draw(t, "steps") {
			at = at.Add(time.Duration(rapid.IntRange(1, 10).Draw(t, "dt")) * time.Second)
			d := rapid.Int64Range(-10, 1000).Draw(t, "d")
			n += d
			r.see(at, n, rateWindow)
			if v := r.value(); d < 0 && v != nil || v != nil && (*v < 0 || *v > 1000) {
				t.Fatalf("%v after %d", v, d)
			}
		}
	})
}
