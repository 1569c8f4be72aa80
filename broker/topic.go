package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// Unlimited as a Retention or RetentionBytes keeps records for ever.
const Unlimited = -1

// Topic is a topic as its owner declares it. A zero field leaves the choice
// to the broker and is not checked later.
type Topic struct {
	Name            string
	Partitions      int32
	Retention       time.Duration // Unlimited or a time; ignored where Compact
	RetentionBytes  int64         // of each partition; Unlimited or a size
	Compact         bool          // keep the last record of each key instead of deleting by age
	MaxMessageBytes int32         // largest record batch
}

const declareTimeout = 15 * time.Second

// Declare creates the topics that are missing and compares the others with
// their declaration. Differences come back as *DriftError values (several are
// joined); the missing topics were created all the same, so a caller may log
// the drift and go on.
//
// Where the engine cannot compact, a compact topic is declared as one that is
// never deleted from: nothing is lost, only more is kept.
func Declare(ctx context.Context, cl *kgo.Client, caps Capabilities, topics ...Topic) error {
	if len(topics) == 0 {
		return nil
	}
	adm := kadm.NewClient(cl)
	there, err := adm.ListTopics(fresh(ctx), names(topics)...)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	var missing, rest []Topic
	for _, t := range topics {
		if there.Has(t.Name) {
			rest = append(rest, t)
		} else {
			missing = append(missing, t)
		}
	}
	raced, err := create(ctx, cl, caps, missing)
	if err != nil {
		return err
	}
	return check(ctx, adm, caps, append(rest, raced...))
}

// create makes the topics and returns those that somebody else made first.
func create(ctx context.Context, cl *kgo.Client, caps Capabilities, topics []Topic) (raced []Topic, err error) {
	if len(topics) == 0 {
		return nil, nil
	}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.TimeoutMillis = int32(declareTimeout.Milliseconds())
	for _, t := range topics {
		req.Topics = append(req.Topics, t.request(caps))
	}
	resp, err := req.RequestWith(ctx, cl)
	if err != nil {
		return nil, fmt.Errorf("create topics: %w", err)
	}
	var errs []error
	for _, r := range resp.Topics {
		switch e := kerr.ErrorForCode(r.ErrorCode); {
		case e == nil:
		case errors.Is(e, kerr.TopicAlreadyExists):
			i := slices.IndexFunc(topics, func(t Topic) bool { return t.Name == r.Topic })
			if i >= 0 {
				raced = append(raced, topics[i])
			}
		case r.ErrorMessage != nil:
			errs = append(errs, fmt.Errorf("create topic %s: %w: %s", r.Topic, e, *r.ErrorMessage))
		default:
			errs = append(errs, fmt.Errorf("create topic %s: %w", r.Topic, e))
		}
	}
	return raced, errors.Join(errs...)
}

func (t Topic) request(caps Capabilities) kmsg.CreateTopicsRequestTopic {
	r := kmsg.NewCreateTopicsRequestTopic()
	r.Topic = t.Name
	r.NumPartitions = t.Partitions
	if r.NumPartitions == 0 {
		r.NumPartitions = -1
	}
	r.ReplicationFactor = -1 // the broker's default
	for _, s := range t.settings(caps) {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = s.name, kmsg.StringPtr(s.value)
		r.Configs = append(r.Configs, c)
	}
	return r
}

// setting is one broker-side configuration entry of a topic.
type setting struct{ name, value string }

func (t Topic) settings(caps Capabilities) []setting {
	var out []setting
	add := func(name string, v int64) {
		if v != 0 {
			out = append(out, setting{name, strconv.FormatInt(v, 10)})
		}
	}
	switch {
	case t.Compact && caps.Compaction:
		out = append(out, setting{"cleanup.policy", "compact"})
	case t.Compact:
		out = append(out, setting{"cleanup.policy", "delete"})
		add("retention.ms", Unlimited)
		add("retention.bytes", Unlimited)
	default:
		out = append(out, setting{"cleanup.policy", "delete"})
		add("retention.ms", milliseconds(t.Retention))
		add("retention.bytes", max(t.RetentionBytes, Unlimited))
	}
	add("max.message.bytes", int64(t.MaxMessageBytes))
	return out
}

func milliseconds(d time.Duration) int64 {
	if d < 0 {
		return Unlimited
	}
	return d.Milliseconds()
}

func names(topics []Topic) []string {
	out := make([]string, len(topics))
	for i, t := range topics {
		out[i] = t.Name
	}
	return out
}
