package transform

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

// BenchmarkTransform makes one event of each of b.N, and measures from the first
// commit to the last: joining the group is not the point. In the same run it does
// so with the same handler at least once (read, decode, encode, produce, and then
// commit the offsets, up to 5000 at a time), and plainly produces what was made.
// Compare the figures of one run, with -benchtime=200000x or more.
func BenchmarkTransform(b *testing.B) {
	w := newWorld(b, 4)
	w.moveAll(b.N)
	g := New(Deps{Broker: w.engine.Config, Decoder: registry.NewDecoder(w.schemas), Schemas: w.schemas}, w.config())
	h := func(_ context.Context, e event.Of[moved]) ([]event.Data, error) {
		return []event.Data{booked{Account: e.Data.Account, N: e.Data.N, contract: w.out}}, nil
	}
	on(g, w.in, h)
	if err := g.register(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	once := w.once(b.N, h)
	plain, made := w.atLeastOnce(b, g)
	alone := w.produceAlone(b, made)
	b.StopTimer()
	b.ReportMetric(once, "once/s")
	b.ReportMetric(plain, "at-least-once/s")
	b.ReportMetric(alone, "produce/s")
	b.ReportMetric(once/plain, "of-at-least-once")
	b.ReportMetric(once/alone, "of-produce")
}

func (w *world) moveAll(n int) {
	const atOnce = 5000
	for from := 0; from < n; from += atOnce {
		keys := make([]string, min(atOnce, n-from))
		for i := range keys {
			keys[i] = fmt.Sprint("k", (from+i)%1000)
		}
		w.move(keys...)
	}
}

func (w *world) once(n int, h handler) float64 {
	m := w.start(h)
	done := func() float64 { return w.figure("waybill_transform_events_total") }
	at := func(n float64) time.Time {
		for done() < n {
			time.Sleep(2 * time.Millisecond)
		}
		return time.Now()
	}
	from := at(1)
	before := done()
	to := at(float64(n))
	m.end(w.t)
	return (float64(n) - before) / to.Sub(from).Seconds()
}

func (w *world) atLeastOnce(b *testing.B, g *Group) (rate float64, made []*kgo.Record) {
	cl := w.engine.Client(b, kgo.ConsumerGroup(w.group+"-plain"), kgo.ConsumeTopics(w.in.Topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxBytes(fetchBytes))
	var from time.Time
	first := 0
	for len(made) < b.N {
		var out []*kgo.Record
		for _, rec := range cl.PollRecords(b.Context(), 5000).Records() {
			it := g.read(rec)
			recs, err := it.route.handle(b.Context(), it)
			if err != nil {
				b.Fatal(err)
			}
			out = append(out, recs...)
		}
		for _, rec := range out {
			cl.Produce(b.Context(), rec, func(_ *kgo.Record, err error) {
				if err != nil {
					b.Error(err)
				}
			})
		}
		if err := cl.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
		if err := cl.CommitUncommittedOffsets(b.Context()); err != nil {
			b.Fatal(err)
		}
		made = append(made, out...)
		if from.IsZero() && len(made) > 0 {
			from, first = time.Now(), len(made)
		}
	}
	return float64(len(made)-first) / time.Since(from).Seconds(), made
}

func (w *world) produceAlone(b *testing.B, made []*kgo.Record) float64 {
	cl := w.engine.Client(b)
	again := copies(made)
	from := time.Now()
	for _, rec := range again {
		cl.Produce(b.Context(), rec, func(_ *kgo.Record, err error) {
			if err != nil {
				b.Error(err)
			}
		})
	}
	if err := cl.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	return float64(len(again)) / time.Since(from).Seconds()
}
