package archive_test

import (
	"testing"

	"github.com/waybillhq/waybill/outbox/archive"
)

// BenchmarkWrite archives a day of 200,000 events with bodies of 300 bytes:
// read, written, brought to the disk and read back.
func BenchmarkWrite(b *testing.B) {
	const events = 200_000
	w := newWorld(b)
	w.fill(0, events, 300)
	var bytes int64
	for b.Loop() {
		res, err := archive.Write(b.Context(), w.db, source, b.TempDir(), archive.Options{})
		must(b, err)
		bytes = res.File.Bytes
	}
	b.ReportMetric(float64(events)*float64(b.N)/b.Elapsed().Seconds(), "events/s")
	b.ReportMetric(float64(bytes)/events, "B/event")
	b.ReportMetric(float64(w.peak(events))/(1<<20), "peak-MB")
}
