package push

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// layout numbers the topic partitions a hub reads. Vectors of offsets are
// indexed by that number, the slot.
type layout struct {
	topics []topicLayout // by name
	first  map[string]int
	slots  int
	// hash names the topics and their ids, so that a cursor of a log that was
	// deleted and created again is told from one of this log.
	hash [8]byte
}

type topicLayout struct {
	name       string
	partitions int
	first      int // slot of partition 0
	latest     bool
}

func newLayout(topics kadm.TopicDetails, latest []string) (*layout, error) {
	l := &layout{first: map[string]int{}}
	sum := sha256.New()
	for _, t := range topics.Sorted() {
		if t.Err != nil {
			return nil, fmt.Errorf("topic %s: %w", t.Topic, t.Err)
		}
		n := len(t.Partitions)
		l.topics = append(l.topics, topicLayout{t.Topic, n, l.slots, slices.Contains(latest, t.Topic)})
		l.first[t.Topic] = l.slots
		l.slots += n
		_, _ = fmt.Fprintf(sum, "%q %x\n", t.Topic, t.ID[:])
	}
	copy(l.hash[:], sum.Sum(nil))
	return l, nil
}

func (l *layout) equal(o *layout) bool {
	return l.hash == o.hash && slices.Equal(l.topics, o.topics)
}

// slot of a topic's partition. The hub only reads partitions it has a slot for.
func (l *layout) slot(topic string, partition int32) int {
	return l.first[topic] + int(partition)
}

// each calls f with every partition and its slot.
func (l *layout) each(f func(topic string, partition int32, slot int)) {
	for _, t := range l.topics {
		for p := range t.partitions {
			f(t.name, int32(p), t.first+p)
		}
	}
}

// latest tells, per slot, whether its topic is one of Config.LatestTopics.
func (l *layout) latest() []bool {
	is := make([]bool, l.slots)
	for _, t := range l.topics {
		for p := range t.partitions {
			is[t.first+p] = t.latest
		}
	}
	return is
}

// readLayout asks the cluster.
func readLayout(ctx context.Context, admin *kadm.Client, topics, latest []string) (*layout, error) {
	// Without this option the answer may be the client's own, seconds old.
	md, err := admin.Metadata(kadm.WithAuthorizedOps(ctx), topics...)
	if err != nil {
		return nil, fmt.Errorf("describe topics %v: %w", topics, err)
	}
	return newLayout(md.Topics, latest)
}

// readEnds asks for the first and the next offset of every slot. The end is
// the last stable one: what an open transaction wrote is not there yet.
func readEnds(ctx context.Context, admin *kadm.Client, l *layout) (starts, ends []int64, err error) {
	names := make([]string, len(l.topics))
	for i, t := range l.topics {
		names[i] = t.name
	}
	from, err := admin.ListStartOffsets(ctx, names...)
	if err != nil {
		return nil, nil, fmt.Errorf("list start offsets: %w", err)
	}
	to, err := admin.ListCommittedOffsets(ctx, names...)
	if err != nil {
		return nil, nil, fmt.Errorf("list end offsets: %w", err)
	}
	starts, err = l.vector(from)
	if err != nil {
		return nil, nil, err
	}
	ends, err = l.vector(to)
	return starts, ends, err
}

func (l *layout) vector(listed kadm.ListedOffsets) ([]int64, error) {
	v := make([]int64, l.slots)
	var failed error
	l.each(func(topic string, p int32, slot int) {
		o, ok := listed.Lookup(topic, p)
		switch {
		case !ok:
			failed = fmt.Errorf("no offset listed for %s/%d", topic, p)
		case o.Err != nil:
			failed = fmt.Errorf("list offset of %s/%d: %w", topic, p, o.Err)
		default:
			v[slot] = o.Offset
		}
	})
	return v, failed
}

// consume is what to read, each slot from its offset.
func (l *layout) consume(from []int64) map[string]map[int32]kgo.Offset {
	all := map[string]map[int32]kgo.Offset{}
	l.each(func(topic string, p int32, slot int) {
		if all[topic] == nil {
			all[topic] = map[int32]kgo.Offset{}
		}
		all[topic][p] = kgo.NewOffset().At(from[slot])
	})
	return all
}
