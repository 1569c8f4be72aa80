package embedded

import (
	"bytes"
	"crypto/rand"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
)

func bounds(t *testing.T, cl *kgo.Client, topic string) (start, end int64) {
	t.Helper()
	adm := kadm.NewClient(cl)
	s, err := adm.ListStartOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	e, err := adm.ListEndOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	so, _ := s.Lookup(topic, 0)
	eo, _ := e.Lookup(topic, 0)
	return so.Offset, eo.Offset
}

func produce(t testing.TB, cl *kgo.Client, rs ...*kgo.Record) {
	t.Helper()
	for _, r := range rs { // one batch each
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func kilobytes(n int) []*kgo.Record {
	rs := make([]*kgo.Record, n)
	for i := range rs {
		v := make([]byte, 1000)
		_, _ = rand.Read(v)
		rs[i] = &kgo.Record{Topic: "things", Value: v}
	}
	return rs
}

// The log alone would not: after a restart it deletes nothing until a topic
// is created.
func TestRetentionByBytesHoldsAfterARestart(t *testing.T) {
	dir := t.TempDir()
	b, err := Start(t.Context(), Config{Dir: dir, Listen: "127.0.0.1:0", Logger: quiet})
	if err != nil {
		t.Fatal(err)
	}
	cl := client(t, b)
	if err := broker.Declare(t.Context(), cl, b.Capabilities(), broker.Topic{Name: "things", Partitions: 1, RetentionBytes: 50_000, Retention: broker.Unlimited}); err != nil {
		t.Fatal(err)
	}
	produce(t, cl, kilobytes(100)...)
	cl.Close()
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	b = start(t, Config{Dir: dir, retentionEvery: 20 * time.Millisecond})
	cl = client(t, b)
	eventually(t, "old records gone", func() bool {
		start, end := bounds(t, cl, "things")
		return end == 100 && start > 50 && start < 60
	})
}

func TestOneOldRecordTakesNoYoungOnesAlong(t *testing.T) {
	b := start(t, Config{})
	cl := client(t, b)
	if err := broker.Declare(t.Context(), cl, b.Capabilities(), broker.Topic{Name: "things", Partitions: 1, Retention: time.Hour}); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	produce(t, cl,
		&kgo.Record{Topic: "things", Value: []byte("expired"), Timestamp: old},
		&kgo.Record{Topic: "things", Value: []byte("young")},
		&kgo.Record{Topic: "things", Value: []byte("late"), Timestamp: old},
		&kgo.Record{Topic: "things", Value: []byte("young")},
	)
	for range 2 {
		if err := b.keep.apply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if start, end := bounds(t, cl, "things"); start != 1 || end != 4 {
		t.Errorf("kept %d to %d", start, end)
	}
}

func TestOffsetsGoOnAfterEverythingExpired(t *testing.T) {
	dir := t.TempDir()
	c := spawn(t, dir, "127.0.0.1:0")
	cfg := broker.Config{Brokers: []string{c.addr}, Logger: quiet}
	cl, err := cfg.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	if err := broker.Declare(t.Context(), cl, broker.Capabilities{}, broker.Topic{Name: "things", Partitions: 1, Retention: time.Hour}); err != nil {
		t.Fatal(err)
	}
	old := time.Now().Add(-2 * time.Hour)
	for range 5 {
		produce(t, cl, &kgo.Record{Topic: "things", Value: bytes.Repeat([]byte("x"), 100), Timestamp: old})
	}
	for range 2 { // retention runs when the broker starts
		c.kill()
		c = spawn(t, dir, c.addr)
		eventually(t, "expired records gone", func() bool { start, _ := bounds(t, cl, "things"); return start == 4 })
	}
	if _, end := bounds(t, cl, "things"); end != 5 {
		t.Errorf("the next offset is %d, want 5", end)
	}
}
