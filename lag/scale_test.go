package lag

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/broker/embedded"
)

// fill gives every partition some records and every group a place of its own
// on each.
func (w *world) fill(partitions, groups int) {
	w.t.Helper()
	var recs []*kgo.Record
	for p := range partitions {
		for i := range 4 {
			recs = append(recs, &kgo.Record{
				Topic: w.topic, Partition: int32(p), Value: []byte("v"), Timestamp: time.Now().Add(time.Duration(i-4) * time.Hour),
			})
		}
	}
	if err := w.cl.ProduceSync(w.t.Context(), recs...).FirstErr(); err != nil {
		w.t.Fatal(err)
	}
	for g := range groups { // one after the other: each is a write to the disk for every partition
		var os kadm.Offsets
		for p := range partitions {
			os.AddOffset(w.topic, int32(p), int64(g%4), -1)
		}
		w.eventually("committed", func() bool {
			return w.adm.CommitAllOffsets(w.t.Context(), fmt.Sprintf("%s-%d", w.group, g), os) == nil
		})
	}
}

func names(prefix string, n int) (out []string) {
	for i := range n {
		out = append(out, fmt.Sprintf("%s-%d", prefix, i))
	}
	return out
}

func TestARoundCostsTheSameForManyGroups(t *testing.T) {
	const partitions, groups = 50, 40
	cfg := quick()
	w := newWorld(t, partitions, cfg)
	w.m.cfg.Groups = names(w.group, groups)
	w.fill(partitions, groups)
	var s *Snapshot
	// Groups share what is read: four places of each partition, whatever the groups.
	w.eventually("every time is exact", func() bool {
		s = w.m.Look(t.Context())
		return len(s.Groups) == groups && s.Groups[0].Seconds != nil && s.Groups[groups-1].Seconds != nil && s.Round.Reads == 0
	})
	for _, g := range s.Groups {
		for _, p := range g.Partitions {
			if !p.Exact || p.Seconds == nil || *p.Lag != 4-*p.Committed || *p.Seconds < 3500*float64(*p.Lag) {
				t.Fatalf("%+v", p)
			}
		}
	}
	// list, describe, offsets, metadata, ends, starts; some room for a broker
	// that has to be found again.
	if s.Round.Requests > 10 {
		t.Errorf("%d requests in a round of %d groups", s.Round.Requests, groups)
	}
}

func TestReadsAreBoundedAndEstimatedMeanwhile(t *testing.T) {
	cfg := quick()
	cfg.Reads = 30 // three a round
	w := newWorld(t, 20, cfg)
	w.m.cfg.Groups = names(w.group, 1)
	w.fill(20, 1)
	for range 7 {
		if s := w.m.Look(t.Context()); s.Round.Reads > 3 {
			t.Fatalf("%d reads in a round", s.Round.Reads)
		}
	}
	for _, p := range w.m.Latest().Groups[0].Partitions {
		if !p.Exact {
			t.Errorf("never asked: %+v", p)
		}
	}
}

// TestMeasureARound prints what a look at 100 groups on a topic of 1,000
// partitions costs. Filling it takes two minutes, which the offsets' way to the
// disk takes.
func TestMeasureARound(t *testing.T) {
	if os.Getenv("WAYBILL_MEASURE_LAG") == "" {
		t.Skip("set WAYBILL_MEASURE_LAG=1")
	}
	cfg := quick()
	cfg.Every, cfg.Timeout, cfg.Reads = 5*time.Second, 30*time.Second, 200
	b, err := embedded.Start(t.Context(), embedded.Config{Dir: t.TempDir(), Listen: "127.0.0.1:0", Logger: cfg.Logger})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil { // after so many commits it takes longer than it allows itself, and goes on
			t.Log(err)
			closed(t)
		}
	})
	w := newWorldOn(t, &brokertest.Engine{Config: b.Client(), Capabilities: b.Capabilities()}, 1000, cfg)
	w.m.cfg.Groups = names(w.group, 100)
	w.fill(1000, 100)
	for range 10 {
		cpu := processor()
		s := w.m.Look(t.Context())
		exact := 0
		for _, g := range s.Groups {
			for _, p := range g.Partitions {
				if p.Exact {
					exact++
				}
			}
		}
		t.Logf("round %d: %.0f ms, %d ms of processor (broker included), %d requests, %d records read, %d of 100,000 exact",
			s.Round.Number, s.Round.Took*1000, (processor() - cpu).Milliseconds(), s.Round.Requests, s.Round.Reads, exact)
	}
}

// closed waits until a broker that goes on closing is done.
func closed(t *testing.T) {
	t.Helper()
	limit, stacks := time.After(5*time.Minute), make([]byte, 16<<20)
	for bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("kfake.(*Cluster).Close")) {
		select {
		case <-limit:
			t.Fatal("the broker never closes")
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
