package broker_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
)

func declare(t *testing.T, e *brokertest.Engine, cl *kgo.Client, name string, partitions int32) string {
	t.Helper()
	topic := brokertest.Topic(t, name)
	err := broker.Declare(t.Context(), cl, e.Capabilities, broker.Topic{Name: topic, Partitions: partitions, Retention: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	return topic
}

func produce(t *testing.T, cl *kgo.Client, topic string, partition int32, n int) {
	t.Helper()
	for range n {
		r := &kgo.Record{Topic: topic, Partition: partition, Value: []byte("v")}
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestLagOfAPartitionWithoutACommitIsUnknown(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	topic, group := declare(t, e, cl, "accounts", 3), brokertest.Group(t, "readers")
	produce(t, cl, topic, 0, 5)
	produce(t, cl, topic, 1, 4)
	var os kadm.Offsets
	os.AddOffset(topic, 0, 2, -1)
	if _, err := kadm.NewClient(cl).CommitOffsets(t.Context(), group, os); err != nil {
		t.Fatal(err)
	}
	lags, err := broker.Lag(t.Context(), cl, group)
	if err != nil {
		t.Fatal(err)
	}
	if len(lags) != 3 {
		t.Fatalf("got %+v", lags)
	}
	if l := lags[0]; l.Lag == nil || *l.Lag != 3 || *l.Committed != 2 || *l.End != 5 {
		t.Errorf("partition 0: %+v", l)
	}
	if l := lags[1]; l.Lag != nil || l.Committed != nil || l.Start == nil || l.End == nil {
		t.Errorf("partition 1: %+v", l)
	}
	if l := lags[2]; l.Lag == nil || *l.Lag != 0 || l.Committed != nil {
		t.Errorf("partition 2, which is empty: %+v", l)
	}
}

func TestLagOfADeletedTopicIsAnErrorNotZero(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	adm := kadm.NewClient(cl)
	topic, kept, group := declare(t, e, cl, "gone", 1), declare(t, e, cl, "kept", 1), brokertest.Group(t, "readers")
	var os kadm.Offsets
	os.AddOffset(topic, 0, 0, -1)
	os.AddOffset(kept, 0, 0, -1)
	if _, err := adm.CommitOffsets(t.Context(), group, os); err != nil {
		t.Fatal(err)
	}
	if _, err := adm.DeleteTopics(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	lags, err := broker.Lag(t.Context(), cl, group)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lags {
		if l.Topic == topic && l.Lag != nil {
			t.Errorf("got %+v", l)
		}
	}
}

func TestGroupsAreListedWithMembersAndTopics(t *testing.T) {
	e := brokertest.New(t)
	admin := e.Client(t)
	topic, group := declare(t, e, admin, "accounts", 2), brokertest.Group(t, "readers")
	produce(t, admin, topic, 0, 1)
	member := e.Client(t, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if fs := member.PollFetches(ctx); errors.Join(fs.Err0(), ctx.Err()) != nil {
		t.Fatal(fs.Err())
	}
	groups, err := broker.ListGroups(t.Context(), admin)
	if err != nil {
		t.Fatal(err)
	}
	i := slices.IndexFunc(groups, func(g broker.GroupInfo) bool { return g.Name == group })
	if i < 0 {
		t.Fatalf("not among %+v", groups)
	}
	g := groups[i]
	if g.State != "Stable" || len(g.Members) != 1 || len(g.Members[0].Assigned[topic]) != 2 || !slices.Equal(g.Topics, []string{topic}) {
		t.Errorf("got %+v", g)
	}
}

func TestRecreatedTopicHasAnotherID(t *testing.T) {
	e := brokertest.New(t)
	cl := e.Client(t)
	topic := declare(t, e, cl, "accounts", 1)
	before, err := broker.TopicIDs(t.Context(), cl, topic, "no-such-topic")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kadm.NewClient(cl).DeleteTopics(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	err = broker.Declare(t.Context(), cl, e.Capabilities, broker.Topic{Name: topic, Partitions: 1})
	if err != nil {
		t.Fatal(err)
	}
	// A broker takes a moment to tell of what is new.
	var after map[string][16]byte
	for deadline := time.Now().Add(2 * time.Minute); len(after) == 0 && time.Now().Before(deadline); {
		if after, err = broker.TopicIDs(t.Context(), cl, topic); err != nil {
			t.Fatal(err)
		}
	}
	if len(before) != 1 || len(after) != 1 || before[topic] == after[topic] {
		t.Errorf("before %v, after %v", before, after)
	}
}

func TestConfigWithoutBrokersIsRefused(t *testing.T) {
	if _, err := (broker.Config{}).Client(); !errors.Is(err, broker.ErrNoBrokers) {
		t.Errorf("got %v", err)
	}
}
