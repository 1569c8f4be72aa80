// Package stat sums up waits.
package stat

import (
	"slices"
	"time"
)

// Mean of ds in milliseconds, 0 of none.
func Mean(ds []time.Duration) float64 {
	if len(ds) == 0 {
		return 0
	}
	var sum time.Duration
	for _, d := range ds {
		sum += d
	}
	return Milliseconds(sum / time.Duration(len(ds)))
}

// Quantile is the q-th of ds in milliseconds, 0 of none: of 100 waits, 0.99 is
// the second longest. It sorts ds.
func Quantile(ds []time.Duration, q float64) float64 {
	if len(ds) == 0 {
		return 0
	}
	slices.Sort(ds)
	return Milliseconds(ds[int(q*float64(len(ds)-1))])
}

// Milliseconds of d, to the microsecond.
func Milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
