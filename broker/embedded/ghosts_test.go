package embedded

import (
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waybillhq/waybill/broker"
)

// apparition joins the group as a second member whose connection ends before
// its join is answered.
func apparition(t testing.TB, b *Broker, group string) {
	t.Helper()
	var conns []net.Conn
	cl := client(t, b, kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, addr)
		conns = append(conns, c) // this client sends one request at a time
		return c, err
	}), kgo.RequestRetries(0))
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = group, "consumer", 10_000, 60_000
	subscription := kmsg.NewConsumerMemberMetadata()
	subscription.Topics = []string{"things"}
	protocol := kmsg.NewJoinGroupRequestProtocol()
	protocol.Name, protocol.Metadata = "range", subscription.AppendTo(nil)
	join.Protocols = append(join.Protocols, protocol)
	resp, err := join.RequestWith(t.Context(), cl)
	if err != nil || resp.ErrorCode != kerr.MemberIDRequired.Code {
		t.Fatalf("asked for an id: %v, %v", err, resp.ErrorCode)
	}
	join.MemberID = resp.MemberID
	ended := make(chan error, 1)
	go func() {
		_, err := join.RequestWith(t.Context(), cl)
		ended <- err
	}()
	eventually(t, "it joins", func() bool {
		b.guard.ghosts.mu.Lock()
		defer b.guard.ghosts.mu.Unlock()
		return b.guard.ghosts.joining[membership{group, join.MemberID}] != nil
	})
	for _, c := range conns {
		_ = c.Close()
	}
	if err := <-ended; err == nil {
		t.Fatal("its join was answered; this shows nothing")
	}
}

// A member that was cut off while joining must not keep partitions that nobody
// reads then.
func TestWhoIsCutOffWhileJoiningKeepsNoPartition(t *testing.T) {
	b := start(t, Config{})
	own := client(t, b, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	err := broker.Declare(t.Context(), own, b.Capabilities(), broker.Topic{Name: "things", Partitions: 8, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	var assigned atomic.Int32
	member := client(t, b, kgo.OnPartitionsAssigned(func(context.Context, *kgo.Client, map[string][]int32) { assigned.Add(1) }), kgo.ConsumerGroup("readers"), kgo.ConsumeTopics("things"), kgo.Balancers(kgo.RangeBalancer()),
		kgo.HeartbeatInterval(100*time.Millisecond), kgo.SessionTimeout(6*time.Second), kgo.RebalanceTimeout(10*time.Second))
	read := map[string]bool{}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	round := func(name string) {
		t.Helper()
		for p := range int32(8) {
			r := &kgo.Record{Topic: "things", Partition: p, Value: fmt.Append(nil, name, p)}
			produce(t, own, r)
		}
		for n := 0; n < 8; {
			fetches := member.PollFetches(ctx)
			if ctx.Err() != nil {
				t.Fatalf("%s: %d of 8 partitions are read", name, n)
			}
			fetches.EachRecord(func(r *kgo.Record) {
				if v := string(r.Value); !read[v] {
					read[v] = true
					n++
				}
			})
		}
	}
	round("before")
	before := assigned.Load()
	apparition(t, b, "readers")
	eventually(t, "partitions are shared out anew", func() bool { return assigned.Load() > before })
	round("after")
}

// A client that asks to join again before it was answered leaves nothing behind.
func TestJoinsThatWereNotWaitedForAreForgotten(t *testing.T) {
	g := newGhosts(nil)
	c := &conn{}
	for n := range 100 {
		if !g.joins(c, membership{"readers", fmt.Sprint("member", n)}) {
			t.Fatal("it may not join")
		}
	}
	if len(g.joining) != 1 {
		t.Errorf("%d joins are remembered of one connection", len(g.joining))
	}
}
