package embedded

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/waybillhq/waybill/broker"
)

const (
	defaultRetention = 7 * 24 * time.Hour // of a topic that says nothing, as Kafka's
	retentionStep    = 4 << 20            // bytes of log looked at in one request
)

// retention deletes what topics no longer keep. The log can do that itself,
// in two ways that would break promises: one record with an old time takes
// everything before it along, however new; and when all records have expired
// it forgets the offsets too, so that after a kill new records would get old
// offsets and groups would skip them. Here records go from the start only, up
// to the first that is young enough, and the last batch always stays.
type retention struct {
	cluster *kfake.Cluster
	client  *kgo.Client
	log     *slog.Logger
	every   time.Duration
	counted *atomic.Int64 // told how many partitions there are
}

func newRetention(cluster *kfake.Cluster, cl *kgo.Client, l *listener, cfg Config) *retention {
	return &retention{cluster: cluster, client: cl, log: cfg.Logger, every: cfg.retentionEvery, counted: &l.guard.partitions}
}

// run applies retention until ctx ends.
func (r *retention) run(ctx context.Context) {
	tick := time.NewTicker(r.every)
	defer tick.Stop()
	for {
		if err := r.apply(ctx); err != nil && ctx.Err() == nil {
			r.log.WarnContext(ctx, "embedded broker: retention", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (r *retention) apply(ctx context.Context) error {
	req := kmsg.NewPtrMetadataRequest() // nil topics: all
	resp, err := req.RequestWith(ctx, r.client)
	if err != nil {
		return fmt.Errorf("list topics: %w", err)
	}
	var errs []error
	partitions := 0
	for _, t := range resp.Topics {
		partitions += len(t.Partitions)
	}
	r.counted.Store(int64(partitions))
	for _, t := range resp.Topics {
		if t.Topic == nil || ctx.Err() != nil {
			continue
		}
		if err := r.applyTopic(ctx, *t.Topic, t.TopicID); err != nil {
			errs = append(errs, fmt.Errorf("topic %s: %w", *t.Topic, err))
		}
	}
	return errors.Join(errs...)
}

func (r *retention) applyTopic(ctx context.Context, topic string, id [16]byte) error {
	info := r.cluster.TopicInfo(topic)
	if info == nil {
		return nil // deleted meanwhile
	}
	age := setting(info.Configs, "retention.ms", defaultRetention.Milliseconds())
	size := setting(info.Configs, "retention.bytes", broker.Unlimited)
	young, err := r.firstYoung(ctx, topic, age)
	if err != nil {
		return err
	}
	for _, p := range r.cluster.PartitionInfos(topic) {
		to := p.LogStartOffset
		if age >= 0 {
			to = max(to, from(young, topic, p))
		}
		if size >= 0 && p.NumBytes > size {
			fits, err := r.firstFitting(ctx, topic, id, p, p.NumBytes-size)
			if err != nil {
				return err
			}
			to = max(to, fits)
		}
		if err := r.trim(topic, p, to); err != nil {
			return err
		}
	}
	return nil
}

// firstYoung is, of each partition, the first record that is young enough.
func (r *retention) firstYoung(ctx context.Context, topic string, age int64) (kadm.ListedOffsets, error) {
	if age < 0 {
		return nil, nil
	}
	listed, err := kadm.NewClient(r.client).ListOffsetsAfterMilli(ctx, time.Now().UnixMilli()-age, topic)
	if err != nil {
		return nil, fmt.Errorf("list offsets by time: %w", err)
	}
	return listed, nil
}

func from(young kadm.ListedOffsets, topic string, p *kfake.PartitionInfo) int64 {
	o, ok := young.Lookup(topic, p.Partition)
	if !ok || o.Err != nil || o.Offset < 0 {
		return p.LogStartOffset
	}
	return o.Offset
}

// trim never takes the last batch: it is what the next offset is known by.
func (r *retention) trim(topic string, p *kfake.PartitionInfo, to int64) error {
	to = min(to, p.HighWatermark-1)
	if to <= p.LogStartOffset {
		return nil
	}
	err := r.cluster.DeleteRecords(topic, p.Partition, to)
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		return fmt.Errorf("delete records of partition %d up to %d: %w", p.Partition, to, err)
	}
	return nil
}

// firstFitting walks batches from the start of a partition until excess bytes
// lie behind, and returns where it stands.
func (r *retention) firstFitting(ctx context.Context, topic string, id [16]byte, p *kfake.PartitionInfo, excess int64) (int64, error) {
	at := p.LogStartOffset
	for excess > 0 && at < p.HighWatermark {
		batches, err := r.fetch(ctx, topic, id, p.Partition, at)
		if err != nil {
			return at, err
		}
		next := at
		for excess > 0 && len(batches) >= batchRecords {
			n := int64(binary.BigEndian.Uint32(batches[batchLength:])) + 12
			if n < batchRecords || n > int64(len(batches)) {
				break
			}
			base := int64(binary.BigEndian.Uint64(batches))                       // #nosec G115
			next = base + int64(binary.BigEndian.Uint32(batches[batchLast:])) + 1 // #nosec G115
			excess -= n
			batches = batches[n:]
		}
		if next <= at {
			return at, nil
		}
		at = next
	}
	return at, nil
}

func (r *retention) fetch(ctx context.Context, topic string, id [16]byte, partition int32, at int64) ([]byte, error) {
	p := kmsg.NewFetchRequestTopicPartition()
	p.Partition, p.FetchOffset, p.PartitionMaxBytes = partition, at, retentionStep
	p.CurrentLeaderEpoch = -1
	t := kmsg.NewFetchRequestTopic()
	t.Topic, t.TopicID = topic, id
	t.Partitions = append(t.Partitions, p)
	req := kmsg.NewPtrFetchRequest()
	req.MaxBytes, req.SessionEpoch = retentionStep, -1
	req.Topics = append(req.Topics, t)
	kresp, err := r.client.Broker(0).Request(ctx, req)
	if err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	resp := kresp.(*kmsg.FetchResponse)
	if err := kerr.ErrorForCode(resp.ErrorCode); err != nil {
		return nil, fmt.Errorf("fetch: %w", err)
	}
	for _, t := range resp.Topics {
		for _, p := range t.Partitions {
			return p.RecordBatches, kerr.ErrorForCode(p.ErrorCode)
		}
	}
	return nil, nil
}

func setting(configs map[string]*string, name string, otherwise int64) int64 {
	v := configs[name]
	if v == nil {
		return otherwise
	}
	n, err := strconv.ParseInt(*v, 10, 64)
	if err != nil {
		return broker.Unlimited // keep rather than guess
	}
	return n
}
