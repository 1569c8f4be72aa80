package cdc

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// topicReader reads a topic's keys from one place to another.
type topicReader struct {
	client *kgo.Client
	topic  string
	at, to map[int32]int64
	quiet  int // polls in a row that brought nothing
}

// Polls of a topicReader, and after how many that brought nothing it looks
// whether anything can come.
const (
	pollFor    = 2 * time.Second
	quietPolls = 5
)

// newTopicReader is nil if there is nothing to read.
func (c *CDC) newTopicReader(topic string, from, to map[int32]int64) (*topicReader, error) {
	r := &topicReader{topic: topic, at: maps.Clone(from), to: to}
	if r.done() {
		return nil, nil
	}
	start := map[int32]kgo.Offset{}
	for p, end := range to {
		if r.at[p] < end {
			start[p] = kgo.NewOffset().At(r.at[p])
		}
	}
	var err error
	r.client, err = c.client(kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: start}),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchMaxBytes(8<<20))
	if err != nil {
		return nil, fmt.Errorf("broker client: %w", err)
	}
	return r, nil
}

func (r *topicReader) done() bool {
	for p, end := range r.to {
		if r.at[p] < end {
			return false
		}
	}
	return true
}

// read gives about most keys, each with whether the last record of it that was
// read is a row.
func (r *topicReader) read(ctx context.Context, most int) (map[string]bool, error) {
	live := map[string]bool{}
	for len(live) < most && !r.done() {
		records, err := r.poll(ctx, most-len(live))
		if err != nil {
			return nil, err
		}
		for _, rec := range records {
			if rec.Offset >= r.to[rec.Partition] {
				r.at[rec.Partition] = max(r.at[rec.Partition], r.to[rec.Partition])
				continue
			}
			r.at[rec.Partition] = rec.Offset + 1
			if rec.Value == nil || isChange(rec) {
				live[string(rec.Key)] = rec.Value != nil
			}
		}
		if len(records) > 0 {
			r.quiet = 0
		} else if r.quiet++; r.quiet >= quietPolls {
			return live, r.skip(ctx)
		}
	}
	return live, nil
}

// isChange tells our events from what somebody else put into the topic, which is
// not ours to delete.
func isChange(rec *kgo.Record) bool {
	for _, h := range rec.Headers {
		if h.Key == event.HeaderType {
			return strings.Contains(string(h.Value), "."+recordName)
		}
	}
	return false
}

func (r *topicReader) poll(ctx context.Context, most int) ([]*kgo.Record, error) {
	within, cancel := context.WithTimeout(ctx, pollFor)
	defer cancel()
	fetches := r.client.PollRecords(within, most)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	for _, e := range fetches.Errors() {
		if !errors.Is(e.Err, context.DeadlineExceeded) {
			return nil, e.Err
		}
	}
	return fetches.Records(), nil
}

// skip gives up on offsets that nothing comes from though the broker answers:
// retention or a remade topic took them. The last records of a compacted topic
// are never among those, since compaction leaves the end alone.
func (r *topicReader) skip(ctx context.Context) error {
	adm := kadm.NewClient(r.client)
	starts, err := adm.ListStartOffsets(ctx, r.topic)
	if err == nil {
		err = starts.Error()
	}
	if err != nil {
		return fmt.Errorf("look where topic %s begins: %w", r.topic, err)
	}
	r.quiet = 0
	for p := range r.to {
		r.at[p] = r.to[p]
	}
	return nil
}

// digest names a key, however long.
func digest(key string) uuid.UUID {
	sum := sha256.Sum256([]byte(key))
	return uuid.UUID(sum[:16])
}
