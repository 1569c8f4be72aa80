package producer_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/broker/producer"
)

// What a cluster of several brokers may answer, and one does only after months:
// the embedded broker's own code as three nodes, told what to say.

func newCluster(t *testing.T, partitions int32, topics ...string) (*kfake.Cluster, *brokertest.Engine) {
	t.Helper()
	c, err := kfake.NewCluster(kfake.NumBrokers(3), kfake.SeedTopics(partitions, topics...))
	must(t, err)
	t.Cleanup(c.Close)
	cfg := broker.Config{Brokers: c.ListenAddrs(), Logger: slog.New(slog.DiscardHandler)}
	return c, &brokertest.Engine{Config: cfg, Capabilities: broker.Kafka()}
}

// numbers are the numbers of a partition's records, in the log's order.
func numbers(t *testing.T, e *brokertest.Engine, topic string, n int) (out []int) {
	t.Helper()
	for i, r := range read(t, e, topic, n) {
		if r.Offset != int64(i) {
			t.Fatalf("record %d is at offset %d", i, r.Offset)
		}
		out = append(out, number(r))
	}
	return out
}

func (h *heard) offset(tag int) (int64, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	at, ok := h.offsets[tag]
	return at, ok
}

func TestLeadersThatMoveAreFollowed(t *testing.T) {
	c, e := newCluster(t, 4, "t")
	p, h := start(t, e.Client(t), producer.Config[int]{MaxBatchBytes: 2 << 10})
	tp, err := p.Topic(t.Context(), "t")
	must(t, err)
	const n = 4000
	for i := range n {
		if i%400 == 200 {
			c.ShufflePartitionLeaders()
		}
		r := record(fmt.Sprint("k", i%17), i, 100)
		tp.For(r.Key).Append(r, i)
	}
	must(t, p.Flush(patience(t)))
	last := map[string]int{}
	recs := read(t, e, "t", n)
	for _, r := range recs {
		i := number(r)
		if before, ok := last[string(r.Key)]; ok && before >= i {
			t.Fatalf("%d after %d", i, before)
		}
		last[string(r.Key)] = i
		if at, _ := h.offset(i); at != r.Offset {
			t.Fatalf("record %d is at %d, reported at %d", i, r.Offset, at)
		}
	}
	if len(recs) != n {
		t.Errorf("%d records of %d", len(recs), n)
	}
}

func TestALeaderThatIsGoneIsReplaced(t *testing.T) {
	c, e := newCluster(t, 1, "t")
	p, _ := start(t, e.Client(t), producer.Config[int]{})
	tp, err := p.Topic(t.Context(), "t")
	must(t, err)
	q := tp.Partition(0)
	for i := range 9 {
		if i > 0 && i%3 == 0 && i < 9 {
			must(t, c.RemoveNode(c.LeaderFor("t", 0)))
		}
		q.Append(record("k", i, 10), i)
		must(t, q.Drain(patience(t)))
	}
	if got := numbers(t, e, "t", 9); len(got) != 9 {
		t.Errorf("log has %v", got)
	}
}

// A batch that the broker took, and said it had not, is sent again under its
// own numbers.
func TestAnAppendWhoseAnswerIsALieIsNotRepeated(t *testing.T) {
	c, e := newCluster(t, 1, "t")
	p, h := start(t, e.Client(t), producer.Config[int]{})
	tp, err := p.Topic(t.Context(), "t")
	must(t, err)
	q := tp.Partition(0)
	lies := c.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: 3},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicasAfterAppend, Count: 2},
	)
	const n = 20
	for i := range n {
		q.Append(record("k", i, 10), i)
		must(t, q.Drain(patience(t)))
	}
	if lies.Hits() != 5 {
		t.Fatalf("%d lies", lies.Hits())
	}
	for i, got := range numbers(t, e, "t", n) {
		if at, _ := h.offset(i); got != i || at != int64(i) {
			t.Errorf("offset %d has record %d, reported at %d", i, got, at)
		}
	}
}

// The broker took a batch, said it had not, and refuses it the next time. No
// other may have its numbers: the broker would take that for the same batch,
// and acknowledge what it does not write.
func TestARefusalAfterALostAnswerCostsNoOtherRecord(t *testing.T) {
	for _, refusal := range []*kerr.Error{kerr.TopicAuthorizationFailed, kerr.InvalidRecord, kerr.UnknownServerError} {
		t.Run(refusal.Message, func(t *testing.T) {
			c, e := newCluster(t, 1, "t")
			p, h := start(t, e.Client(t), producer.Config[int]{})
			tp, err := p.Topic(t.Context(), "t")
			must(t, err)
			q := tp.Partition(0)
			c.Fault(
				kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut},
				kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: refusal},
			)
			q.Append(record("k", 1, 10), 1)
			r := <-h.refused
			if r.Tag != 1 || !errors.Is(r.Err, refusal) {
				t.Fatalf("refused %d: %v", r.Tag, r.Err)
			}
			q.Append(record("k", 2, 10), 2)
			q.Skip(func(int) bool { return true })
			must(t, q.Drain(patience(t)))
			if got := numbers(t, e, "t", 2); got[1] != 2 {
				t.Errorf("log has %v", got)
			}
			if at, _ := h.offset(2); at != 1 {
				t.Errorf("reported at %d", at)
			}
		})
	}
}

// A producer the broker does not know any more goes on as a new one.
func TestAForgottenProducerGoesOn(t *testing.T) {
	for _, forgets := range []*kerr.Error{kerr.UnknownProducerID, kerr.OutOfOrderSequenceNumber, kerr.InvalidProducerEpoch, kerr.InvalidProducerIDMapping} {
		t.Run(forgets.Message, func(t *testing.T) {
			c, e := newCluster(t, 2, "t")
			p, _ := start(t, e.Client(t), producer.Config[int]{})
			tp, err := p.Topic(t.Context(), "t")
			must(t, err)
			const n = 30
			for i := range n {
				if i%10 == 5 {
					c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: forgets})
				}
				tp.Partition(0).Append(record("k", i, 10), i)
				if i%4 == 0 {
					must(t, p.Flush(patience(t)))
				}
			}
			must(t, p.Flush(patience(t)))
			for i, got := range numbers(t, e, "t", n) {
				if got != i {
					t.Fatalf("offset %d has record %d", i, got)
				}
			}
		})
	}
}

// Trouble of another kind says nothing of a topic's absence.
func TestATopicThatIsUnknownForAMomentAfterTroubleIsNotRefused(t *testing.T) {
	c, e := newCluster(t, 1, "t")
	p, h := start(t, e.Client(t), producer.Config[int]{UnknownTopic: time.Second})
	tp, err := p.Topic(t.Context(), "t")
	must(t, err)
	q := tp.Partition(0)
	trouble := c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
	q.Append(record("k", 1, 10), 1)
	since := time.Now()
	for time.Since(since) < 1100*time.Millisecond { // longer than a topic may be unknown
		must(t, trouble.Wait(patience(t), trouble.Hits()+1))
	}
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.UnknownTopicOrPartition})
	trouble.Remove()
	must(t, q.Drain(patience(t)))
	select {
	case r := <-h.refused:
		t.Errorf("refused: %v", r.Err)
	default:
	}
}

// A record's time must not grow old while its partition waits: a broker that
// bounds it would never take it.
func TestARecordThatIsSentAnewHasANewTime(t *testing.T) {
	c, e := newCluster(t, 1, "t")
	p, h := start(t, e.Client(t), producer.Config[int]{})
	tp, err := p.Topic(t.Context(), "t")
	must(t, err)
	q := tp.Partition(0)
	c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidTimestamp})
	q.Append(record("k", 1, 10), 1)
	<-h.refused
	time.Sleep(5 * time.Millisecond)
	again := time.Now().Truncate(time.Millisecond)
	q.Retry()
	must(t, q.Drain(patience(t)))
	if got := read(t, e, "t", 1)[0].Timestamp; got.Before(again) {
		t.Errorf("record of %v, sent again at %v", got, again)
	}
}

// Only the record that was given up is dropped, not the one that has taken its
// place.
func TestAnotherRecordIsNotSkipped(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	topic := createTopic(t, cl, 1, nil)
	p, h := start(t, cl, producer.Config[int]{MaxRecordBytes: 1000})
	tp, err := p.Topic(t.Context(), topic)
	must(t, err)
	q := tp.Partition(0)
	q.Append(record("k", 1, 2000), 1)
	<-h.refused
	if tag, ok := q.Skip(func(tag int) bool { return tag == 2 }); ok {
		t.Fatalf("skipped %d", tag)
	}
	if err := q.Drain(patience(t)); !errors.Is(err, producer.ErrStopped) {
		t.Fatalf("drain: %v", err)
	}
	if tag, ok := q.Skip(func(tag int) bool { return tag == 1 }); !ok || tag != 1 {
		t.Fatalf("skipped %d, %v", tag, ok)
	}
	must(t, q.Drain(patience(t)))
}

// A record that cannot be made is refused when its turn comes, behind what was
// queued before it.
func TestARejectedRecordWaitsForItsTurn(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	topic := createTopic(t, cl, 1, nil)
	p, h := start(t, cl, producer.Config[int]{})
	tp, err := p.Topic(t.Context(), topic)
	must(t, err)
	q := tp.Partition(0)
	why := errors.New("no schema")
	for i := range 5 {
		q.Append(record("k", i, 10), i)
	}
	q.Reject(why, 5)
	q.Append(record("k", 6, 10), 6)
	if r := <-h.refused; r.Tag != 5 || !errors.Is(r.Err, why) {
		t.Fatalf("refused %d: %v", r.Tag, r.Err)
	}
	if got := read(t, e, topic, 5); len(got) != 5 {
		t.Fatalf("%d records before it", len(got))
	}
	if tags := q.Discard(); len(tags) != 2 || tags[0] != 5 || tags[1] != 6 {
		t.Fatalf("discarded %v", tags)
	}
	q.Close()
	if q.Reject(why, 7) {
		t.Error("a closed partition takes a record")
	}
}

// What a topic takes is learnt from it, and forgotten when it may have changed.
func TestABatchIsAsLargeAsTheTopicTakesNow(t *testing.T) {
	c, e := newCluster(t, 1, "t")
	setLimit := func(bytes string) {
		resp, err := kadm.NewClient(e.Client(t)).AlterTopicConfigs(t.Context(), []kadm.AlterConfig{
			{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &bytes},
		}, "t")
		must(t, err)
		must(t, resp[0].Err)
	}
	var mu sync.Mutex
	most := 0
	c.ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		most = max(most, len(r.(*kmsg.ProduceRequest).Topics[0].Partitions[0].Records))
		return nil, nil, false
	})
	p, h := start(t, e.Client(t), producer.Config[int]{})
	tp, err := p.Topic(t.Context(), "t")
	must(t, err)
	q := tp.Partition(0)
	setLimit("2000")
	q.Append(record("k", 0, 3000), 0)
	<-h.refused
	for i := 1; i < 300; i++ { // a batch of 30 kB is refused
		q.Append(record("k", i, 100), i)
	}
	q.Skip(func(int) bool { return true })
	must(t, q.Drain(patience(t)))
	q.Append(record("k", 300, 3000), 300)
	<-h.refused
	setLimit("1000000")
	mu.Lock()
	most = 0
	mu.Unlock()
	for i := 301; i < 600; i++ {
		q.Append(record("k", i, 100), i)
	}
	q.Retry()
	for i := 600; i < 900; i++ {
		q.Append(record("k", i, 100), i)
	}
	must(t, q.Drain(patience(t)))
	mu.Lock()
	defer mu.Unlock()
	if most < 10_000 {
		t.Errorf("no batch is larger than %d bytes", most)
	}
}

// A transaction goes on without a topic that is gone, which stops alone.
func TestATransactionGoesOnWithoutADeletedTopic(t *testing.T) {
	e := brokertest.New(t)
	if !brokertest.Kafka() {
		_, e = newCluster(t, 1)
	}
	cl := e.Client(t, producer.TransactionOptions()...)
	gone, there := createTopic(t, cl, 1, nil), createTopic(t, cl, 1, nil)
	p, h := start(t, cl, producer.Config[int]{
		TransactionalID: brokertest.Topic(t, "id"), UnknownTopic: 500 * time.Millisecond,
		Failed: func(err error) { t.Errorf("failed: %v", err) },
	})
	must(t, p.Begin(patience(t)))
	a, err := p.Topic(patience(t), gone)
	must(t, err)
	b, err := p.Topic(patience(t), there)
	must(t, err)
	_, err = kadm.NewClient(cl).DeleteTopic(t.Context(), gone)
	must(t, err)
	for i := range 10 {
		a.Partition(0).Append(record("k", i, 10), 100+i)
		b.Partition(0).Append(record("k", i, 10), i)
	}
	must(t, p.Flush(patience(t)))
	if r := <-h.refused; r.Tag != 100 {
		t.Errorf("refused %d: %v", r.Tag, r.Err)
	}
	must(t, p.Commit(patience(t)))
	reader := e.Client(t, kgo.ConsumeTopics(there), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	for n := 0; n < 10; {
		f := reader.PollFetches(patience(t))
		must(t, f.Err())
		n += f.NumRecords()
	}
}

// A refused batch that may be in the log after all cannot be taken out of its
// transaction again.
func TestATransactionWithARefusalInDoubtCommitsNothing(t *testing.T) {
	c, e := newCluster(t, 1, "t")
	failed := make(chan error, 1)
	p, _ := start(t, e.Client(t, producer.TransactionOptions()...), producer.Config[int]{
		TransactionalID: "id", Failed: func(err error) { failed <- err },
	})
	must(t, p.Begin(patience(t)))
	tp, err := p.Topic(patience(t), "t")
	must(t, err)
	c.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.InvalidRecord},
	)
	tp.Partition(0).Append(record("k", 1, 10), 1)
	select {
	case err := <-failed:
		if !errors.Is(err, kerr.InvalidRecord) {
			t.Errorf("failed: %v", err)
		}
	case <-patience(t).Done():
		t.Fatal("it goes on")
	}
	if err := p.Flush(patience(t)); !errors.Is(err, context.Canceled) {
		t.Errorf("flush: %v", err)
	}
}
