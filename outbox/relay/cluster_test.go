package relay_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/outbox/relay"
)

// newClusterWorld has a cluster in the broker's place that answers what it is
// told to, and knows transactions.
func newClusterWorld(t *testing.T) (*world, *kfake.Cluster) {
	t.Helper()
	w := newWorld(t)
	c, err := kfake.NewCluster(kfake.NumBrokers(1))
	must(t, err)
	t.Cleanup(c.Close)
	w.engine = &brokertest.Engine{
		Config:       broker.Config{Brokers: c.ListenAddrs(), Logger: slog.New(slog.DiscardHandler)},
		Capabilities: broker.Kafka(),
	}
	w.topic(w.contract.Topic, 3)
	return w, c
}

func (w *world) topic(name string, partitions int32) {
	w.t.Helper()
	_, err := kadm.NewClient(w.engine.Client(w.t)).CreateTopic(w.t.Context(), partitions, 1, nil, name)
	must(w.t, err)
}

// partitionOf is the partition of a key, of three.
func partitionOf(topic, key string) int32 {
	p := kgo.StickyKeyPartitioner(nil).ForTopic(topic)
	return int32(p.Partition(&kgo.Record{Key: []byte(key)}, 3))
}

// A partition whose leader takes nothing, for as long as it may be, keeps no
// other waiting: not while the outbox is polled, nor while a stopped partition
// is looked at.
func TestAPartitionThatTakesNothingHoldsNoOther(t *testing.T) {
	t.Parallel()
	for _, mode := range []relay.Mode{relay.WAL, relay.Poll} {
		t.Run(string(mode), func(t *testing.T) {
			w, c := newClusterWorld(t)
			w.cfg.Mode = mode
			topic := w.contract.Topic
			stuck, refused, well := w.keysAt(0, 1)[0], w.keysAt(1, 1)[0], w.keysAt(2, 1)[0]
			bad := c.Fault(kfake.Fault{
				Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Partitions: []int32{partitionOf(topic, stuck)}, Err: kerr.NotEnoughReplicas, Count: -1,
			})
			w.topicLimit("100000")
			log, _ := w.loudRelay()
			w.addAll(stuck, 1, 5)
			w.addHuge(refused, 1)
			w.addAll(refused, 2, 5)
			w.told(log, 1, "an event is refused")
			w.addAll(well, 1, 5)
			w.marked(5)
			w.told(log, 1, "refused again")
			w.addAll(well, 6, 10)
			w.marked(10)
			w.topicLimit("1000000")
			w.marked(15)
			w.addAll(stuck, 6, 10)
			w.addAll(well, 11, 15)
			w.marked(20)
			bad.Remove()
			w.marked(30)
			got, copies := story(t, w.read(30))
			if !slices.Equal(got[stuck], upTo(10)) || !slices.Equal(got[refused], upTo(5)) || !slices.Equal(got[well], upTo(15)) || copies > 0 {
				t.Errorf("published %v, %d copies", got, copies)
			}
		})
	}
}

func newExactClusterWorld(t *testing.T) (*world, *kfake.Cluster) {
	w, c := newClusterWorld(t)
	w.cfg.ExactlyOnce = true
	return w, c
}

// Relays stop in good order in the middle of transactions, again and again.
func TestExactlyOnceOverOrderlyStops(t *testing.T) {
	t.Parallel()
	w, _ := newExactClusterWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	n := 0
	writer.Go(func() {
		for ctx.Err() == nil && n < 20_000 {
			w.addAll(fmt.Sprint("a", n/50%7), n+1, n+50)
			n += 50
		}
	})
	for i := range 5 {
		before := w.marks()
		log, stop := w.loudRelay()
		w.marked(before + 100 + 37*i)
		stop()
		if log.count("untidily") > 0 {
			t.Error("the relay stopped untidily")
		}
	}
	cancel()
	writer.Wait()
	w.relay()
	w.marked(n)
	got, copies := story(t, w.committed(n))
	total := 0
	for key, seen := range got {
		if !slices.IsSorted(seen) {
			t.Errorf("%s is out of order", key)
		}
		total += len(seen)
	}
	if total != n || copies > 0 {
		t.Errorf("%d of %d events, %d copies", total, n, copies)
	}
}

// cutter cuts connections off behind a request of one kind, which the broker
// then has and has not answered.
type cutter struct{ left atomic.Int32 }

type cutConn struct {
	net.Conn
	c   *cutter
	cut atomic.Bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	// A frame: its length, and then the kind of request.
	if len(b) > 6 && int16(b[4])<<8|int16(b[5]) == int16(kmsg.EndTxn) && c.c.left.Add(-1) >= 0 {
		c.cut.Store(true)
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if c.cut.Load() {
		_ = c.Close()
		return 0, net.ErrClosed
	}
	return n, err
}

// The broker commits and its answer is lost: whether it committed is found out
// by whoever comes next.
func TestExactlyOnceWhenTheAnswerToACommitIsLost(t *testing.T) {
	t.Parallel()
	w, _ := newExactClusterWorld(t)
	var cut cutter
	w.client = func(opts ...kgo.Opt) (*kgo.Client, error) {
		return w.engine.Config.Client(append(opts, kgo.RequestRetries(1), kgo.Dialer(func(ctx context.Context, network, host string) (net.Conn, error) {
			var d net.Dialer
			conn, err := d.DialContext(ctx, network, host)
			if err != nil {
				return nil, err
			}
			return &cutConn{Conn: conn, c: &cut}, nil
		}))...)
	}
	log, _ := w.loudRelay()
	for round := range 4 {
		w.addAll("a", round*100+1, round*100+50)
		w.marked(round*100 + 50)
		cut.left.Store(100) // as often as the client asks
		w.addAll("a", round*100+51, round*100+100)
		w.told(log, round+1, "relay stopped", "commit")
		cut.left.Store(0)
		w.marked(round*100 + 100)
	}
	if got, copies := story(t, w.committed(400)); !slices.Equal(got["a"], upTo(400)) || copies > 0 {
		t.Errorf("%d events, %d copies", len(got["a"]), copies)
	}
}

// The log of positions ends in transactions that were aborted, of this relay's
// and of others.
func TestExactlyOnceFindsItsPositionBelowAbortedOnes(t *testing.T) {
	t.Parallel()
	w, _ := newExactClusterWorld(t)
	stop := w.relay()
	w.add("a", 1)
	w.marked(1)
	stop()
	topics, err := kadm.NewClient(w.engine.Client(t)).ListTopics(t.Context())
	must(t, err)
	names := slices.DeleteFunc(topics.Names(), func(name string) bool { return !strings.HasPrefix(name, "waybill.relay.") })
	if len(names) != 1 {
		t.Fatalf("positions are in %v", names)
	}
	positions := names[0]
	cl := w.engine.Client(t, kgo.TransactionalID("other"), kgo.DefaultProduceTopic(positions))
	for range 100 {
		must(t, cl.BeginTransaction())
		must(t, cl.ProduceSync(t.Context(), kgo.StringRecord("aborted")).FirstErr())
		must(t, cl.EndTransaction(t.Context(), kgo.TryAbort))
	}
	w.exec(`DELETE FROM waybill.outbox_published`)
	w.relay()
	w.marked(1)
	w.add("a", 2)
	if got, copies := story(t, w.committed(2)); !slices.Equal(got["a"], upTo(2)) || copies > 0 {
		t.Errorf("published %v, %d copies", got, copies)
	}
}

// A transaction of which the broker took nothing must not stay open: it would be
// aborted after a while, and the relay's next one with it.
func TestExactlyOnceARefusedEventAloneLeavesNoTransactionOpen(t *testing.T) {
	t.Parallel()
	w, _ := newExactClusterWorld(t)
	w.topicLimit("100000")
	log, _ := w.loudRelay()
	w.addHuge("a", 1)
	w.told(log, 1, "an event is refused")
	adm := kadm.NewClient(w.engine.Client(t))
	state := ""
	for end := time.Now().Add(15 * time.Second); time.Now().Before(end); { // the broker gives it up after twice that
		all, err := adm.ListTransactions(t.Context(), nil, nil)
		must(t, err)
		for _, tx := range all {
			state = tx.State
		}
		if state != "" && state != "Ongoing" {
			return
		}
	}
	t.Errorf("the transaction is %q", state)
}
