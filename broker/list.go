package broker

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TopicInfo is a topic as the broker has it. A nil figure is unknown.
type TopicInfo struct {
	Name           string `json:"name"`
	ID             string `json:"id,omitempty"`
	Partitions     int    `json:"partitions"`
	Records        *int64 `json:"records"` // end minus start over all partitions: an upper bound where records were compacted
	Cleanup        string `json:"cleanup"`
	RetentionMS    *int64 `json:"retention_ms"`    // -1: unlimited
	RetentionBytes *int64 `json:"retention_bytes"` // of each partition; -1: unlimited
	Error          string `json:"error,omitempty"`
}

// Retention is the age at which records go; ok is false if it is unknown,
// and Unlimited means never.
func (t TopicInfo) Retention() (d time.Duration, ok bool) {
	switch {
	case t.RetentionMS == nil:
		return 0, false
	case *t.RetentionMS < 0:
		return Unlimited, true
	}
	return time.Duration(*t.RetentionMS) * time.Millisecond, true
}

// ListTopics describes the named topics, or all but internal ones, by name.
func ListTopics(ctx context.Context, cl *kgo.Client, topics ...string) ([]TopicInfo, error) {
	adm := kadm.NewClient(cl)
	details, err := adm.ListTopics(fresh(ctx), topics...)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	if len(details) == 0 {
		return []TopicInfo{}, nil
	}
	known := details.Names()
	starts, err := adm.ListStartOffsets(ctx, known...)
	if err != nil {
		return nil, fmt.Errorf("list start offsets: %w", err)
	}
	ends, err := adm.ListEndOffsets(ctx, known...)
	if err != nil {
		return nil, fmt.Errorf("list end offsets: %w", err)
	}
	configs, err := adm.DescribeTopicConfigs(ctx, known...)
	if err != nil {
		return nil, fmt.Errorf("describe topic configs: %w", err)
	}
	out := make([]TopicInfo, 0, len(details))
	for _, d := range details.Sorted() {
		info := TopicInfo{Name: d.Topic, Partitions: len(d.Partitions), Records: records(d, starts, ends)}
		if d.ID != (kadm.TopicID{}) {
			info.ID = d.ID.String()
		}
		if d.Err != nil {
			info.Error, info.Records = d.Err.Error(), nil
		}
		if rc, err := configs.On(d.Topic, nil); err == nil && rc.Err == nil {
			info.configure(values(rc))
		}
		out = append(out, info)
	}
	return out, nil
}

func (t *TopicInfo) configure(is map[string]string) {
	t.Cleanup = is["cleanup.policy"]
	t.RetentionMS = number(is["retention.ms"])
	t.RetentionBytes = number(is["retention.bytes"])
}

func number(s string) *int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// records is nil as soon as one partition's offsets are unknown: a sum of
// some partitions would look like a small topic.
func records(d kadm.TopicDetail, starts, ends kadm.ListedOffsets) *int64 {
	var sum int64
	for p := range d.Partitions {
		start, ok1 := starts.Lookup(d.Topic, p)
		end, ok2 := ends.Lookup(d.Topic, p)
		if !ok1 || !ok2 || start.Err != nil || end.Err != nil {
			return nil
		}
		sum += end.Offset - start.Offset
	}
	return &sum
}

// TopicIDs is the id the broker gave each topic at creation. A topic that was
// deleted and made again under its name has another one, which is how stored
// offsets are known to be void. Topics that do not exist are left out.
func TopicIDs(ctx context.Context, cl *kgo.Client, topics ...string) (map[string][16]byte, error) {
	if len(topics) == 0 {
		return map[string][16]byte{}, nil
	}
	details, err := kadm.NewClient(cl).ListTopics(fresh(ctx), topics...)
	if err != nil {
		return nil, fmt.Errorf("list topics: %w", err)
	}
	out := make(map[string][16]byte, len(details))
	for _, d := range details {
		if d.Err == nil && d.ID != (kadm.TopicID{}) {
			out[d.Topic] = d.ID
		}
	}
	return out, nil
}

// fresh makes kadm ask the broker. It otherwise answers from the client's
// cache, seconds old, and a topic declared a moment ago would not be there.
func fresh(ctx context.Context) context.Context { return kadm.WithAuthorizedOps(ctx) }
