package embedded

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
)

// BenchmarkProduce is what the guard costs: the same load with and without
// it, acks=all, durable.
func BenchmarkProduce(b *testing.B) {
	for _, c := range []struct {
		name  string
		codec kgo.CompressionCodec
	}{{"plain", kgo.NoCompression()}, {"snappy", kgo.SnappyCompression()}, {"zstd", kgo.ZstdCompression()}} {
		b.Run(c.name+"/guarded", func(b *testing.B) {
			load(b, start(b, Config{}).Addr(), c.codec)
		})
		b.Run(c.name+"/bare", func(b *testing.B) {
			var lc net.ListenConfig
			cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DataDir(b.TempDir()), kfake.SyncWrites(), kfake.MaxVersions(versions()),
				kfake.BrokerConfigs(map[string]string{"message.max.bytes": "8388608", "log.segment.bytes": "33554432"}),
				kfake.ListenFn(func(n, a string) (net.Listener, error) { return lc.Listen(b.Context(), n, a) }))
			if err != nil {
				b.Fatal(err)
			}
			defer cluster.Close()
			load(b, cluster.ListenAddrs()[0], c.codec)
		})
	}
}

func load(b *testing.B, addr string, codec kgo.CompressionCodec) {
	cl, err := (broker.Config{Brokers: []string{addr}, Logger: quiet}).Client(
		kgo.DefaultProduceTopic("things"), kgo.ProducerBatchCompression(codec), kgo.ProducerLinger(5*time.Millisecond), kgo.MaxBufferedRecords(50_000))
	if err != nil {
		b.Fatal(err)
	}
	defer cl.Close()
	if err := broker.Declare(b.Context(), cl, broker.Capabilities{}, broker.Topic{Name: "things", Partitions: 4, Retention: time.Hour}); err != nil {
		b.Fatal(err)
	}
	value := make([]byte, 200)
	for i := range value {
		value[i] = byte(i * i)
	}
	b.ResetTimer()
	for b.Loop() {
		cl.Produce(context.Background(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			if err != nil {
				b.Error(err)
			}
		})
	}
	if err := cl.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
