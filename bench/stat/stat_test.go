package stat

import (
	"testing"
	"time"
)

func TestQuantiles(t *testing.T) {
	var ds []time.Duration
	for i := 100; i > 0; i-- {
		ds = append(ds, time.Duration(i)*time.Millisecond)
	}
	if p50, p99, most := Quantile(ds, 0.5), Quantile(ds, 0.99), Quantile(ds, 1); p50 != 50 || p99 != 99 || most != 100 {
		t.Errorf("p50 %v p99 %v max %v", p50, p99, most)
	}
	if Quantile(nil, 0.5) != 0 {
		t.Error("of nothing")
	}
}

func TestMean(t *testing.T) {
	if m := Mean([]time.Duration{time.Millisecond, 2 * time.Millisecond}); m != 1.5 {
		t.Errorf("mean %v", m)
	}
	if Mean(nil) != 0 {
		t.Error("of nothing")
	}
}
