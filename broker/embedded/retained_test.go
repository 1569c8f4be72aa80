package embedded_test

import (
	"log/slog"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/embedded"
)

// BenchmarkRetainedBatches tells what a retained batch of one event costs in
// memory, the worst case there is: the broker keeps an entry for each batch.
//
//	go test -run '^$' -bench RetainedBatches -benchtime 1000000x ./broker/embedded
func BenchmarkRetainedBatches(b *testing.B) {
	br, err := embedded.Start(b.Context(), embedded.Config{Dir: b.TempDir(), Listen: "127.0.0.1:0", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = br.Close() }()
	const partitions = 16
	cl, err := br.Client().Client(kgo.ProducerLinger(0), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	if err := broker.Declare(b.Context(), cl, br.Capabilities(), broker.Topic{Name: "things", Partitions: partitions}); err != nil {
		b.Fatal(err)
	}
	before := resident(b)
	body := make([]byte, 300) // about an event with its envelope
	b.ResetTimer()
	var producers sync.WaitGroup
	for p := range partitions {
		producers.Go(func() {
			for i := p; i < b.N; i += partitions {
				// One at a time on each partition, so that no two share a batch.
				err := cl.ProduceSync(b.Context(), &kgo.Record{Topic: "things", Partition: int32(p), Value: body}).FirstErr()
				if err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	producers.Wait()
	b.StopTimer()
	b.ReportMetric(resident(b)-before, "resident-MB")
	b.ReportMetric((resident(b)-before)*1e6/float64(b.N), "resident-B/batch")
}

// resident is this process's memory in MB after what is garbage has gone.
func resident(b *testing.B) float64 {
	debug.FreeOSMemory()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		b.Skip("needs /proc")
	}
	pages, err := strconv.ParseFloat(strings.Fields(string(text))[1], 64)
	if err != nil {
		b.Fatal(err)
	}
	return pages * float64(os.Getpagesize()) / 1e6
}
