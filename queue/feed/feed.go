// Package feed puts the records of a topic into a queue, so that each goes to
// one of many workers, with a lease and retries of its own.
//
// It promises that every record of the chosen types is in the queue once: how
// far the topic has been read is kept in the database and commits with the
// messages. The broker's offsets follow, for others to see, and are not read as
// long as the database knows better. A record's event id is the message's
// dedupe id too, so that an event that was published twice is one message
// within the queue's window.
//
// Order between records is that of the queue: with [Config.KeyGroups], records
// of one key are delivered one at a time in their order. A queue that is full
// is waited for. A record that does not fit a queue is left out, and told as an
// incident.
package feed

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/queue"
	"github.com/waybillhq/waybill/registry"
)

// Decoder reads a record's value as JSON. A registry.Decoder does.
type Decoder interface {
	DecodeAny(ctx context.Context, value []byte) (registry.Info, []byte, error)
}

// Deps is what a feed cannot do without.
type Deps struct {
	DB      *pgxpool.Pool
	Client  func(...kgo.Opt) (*kgo.Client, error) // see broker.Config.Client
	Decoder Decoder                               // for Config.JSON
	Signals *queue.Signals                        // may be nil
}

// Config says what goes where. Queue and Topic are required.
type Config struct {
	Tenant    string // of the queue
	Queue     string
	Topic     string
	Types     []string // of events, as in ce_type; all if there are none
	JSON      bool     // bodies as JSON instead of the bytes of the record
	KeyGroups bool     // a record's key is its message's group
	Group     string   // consumer group, "queue." and the queue's name if empty
	Logger    *slog.Logger
}

// Feed is a topic on its way into a queue.
type Feed struct {
	deps  Deps
	cfg   Config
	queue *queue.Queue
	types map[string]bool

	mu      sync.Mutex
	id      uuid.UUID // of the topic
	askedAt time.Time
}

// New makes a feed.
func New(deps Deps, cfg Config) *Feed {
	if cfg.Group == "" {
		cfg.Group = "queue." + cfg.Queue
		if cfg.Tenant != "" {
			cfg.Group = "queue." + cfg.Tenant + "." + cfg.Queue
		}
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	f := &Feed{
		deps: deps, cfg: cfg, types: map[string]bool{},
		queue: queue.New(deps.DB, queue.Config{Tenant: cfg.Tenant, Name: cfg.Queue, Signals: deps.Signals}),
	}
	for _, t := range cfg.Types {
		f.types[t] = true
	}
	return f
}

const (
	pollRecords = 500
	retryAfter  = time.Second
	askAgain    = 10 * time.Second // for the topic's id
)

// Run feeds until ctx ends. Several may run, also in other processes: they
// share the topic's partitions.
func (f *Feed) Run(ctx context.Context) error {
	if f.cfg.JSON && f.deps.Decoder == nil {
		return fmt.Errorf("feed of queue %s: JSON needs a decoder", f.cfg.Queue)
	}
	cl, err := f.deps.Client(
		kgo.ConsumerGroup(f.cfg.Group), kgo.ConsumeTopics(f.cfg.Topic), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.AdjustFetchOffsetsFn(f.resume),
	)
	if err != nil {
		return fmt.Errorf("feed of queue %s: %w", f.cfg.Queue, err)
	}
	defer cl.Close()
	for ctx.Err() == nil {
		fetched := cl.PollRecords(ctx, pollRecords)
		fetched.EachError(func(topic string, partition int32, err error) {
			if ctx.Err() == nil && !errors.Is(err, context.Canceled) {
				f.cfg.Logger.WarnContext(ctx, "read topic; tried again", "topic", topic, "partition", partition, "error", err)
			}
		})
		recs := fetched.Records()
		if len(recs) == 0 {
			if len(fetched.Errors()) > 0 {
				pause(ctx, retryAfter)
			}
			continue
		}
		f.putUntilDone(ctx, cl, recs)
	}
	return nil
}

// putUntilDone does not go on before the records are in: what comes behind them
// would move the position past them.
func (f *Feed) putUntilDone(ctx context.Context, cl *kgo.Client, recs []*kgo.Record) {
	for said := false; ctx.Err() == nil; said = true {
		err := f.put(ctx, recs)
		if err == nil {
			f.commit(ctx, cl, recs)
			return
		}
		if !said && ctx.Err() == nil {
			f.cfg.Logger.WarnContext(ctx, "feed queue; tried again until it succeeds", "queue", f.cfg.Queue, "topic", f.cfg.Topic, "error", err)
		}
		pause(ctx, retryAfter)
	}
}

// commit tells the broker what the database has. Nobody goes on from it.
func (f *Feed) commit(ctx context.Context, cl *kgo.Client, recs []*kgo.Record) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if err := cl.CommitRecords(ctx, recs...); err != nil && ctx.Err() == nil {
		f.cfg.Logger.WarnContext(ctx, "offsets not committed to the broker", "group", f.cfg.Group, "error", err)
	}
}

// resume begins where the database says, if it knows this very topic.
func (f *Feed) resume(ctx context.Context, offsets map[string]map[int32]kgo.Offset) (map[string]map[int32]kgo.Offset, error) {
	rows, err := f.deps.DB.Query(ctx, `SELECT s.partition, s.next_offset, s.topic_id FROM waybill.queue_feeds s JOIN waybill.queues q ON q.id = s.queue
		WHERE q.tenant = $1 AND q.name = $2 AND s.group_name = $3 AND s.topic = $4`, f.cfg.Tenant, f.cfg.Queue, f.cfg.Group, f.cfg.Topic)
	if err != nil {
		return nil, err
	}
	stored, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (p position, err error) {
		return p, row.Scan(&p.partition, &p.next, &p.topicID)
	})
	if err != nil || len(stored) == 0 {
		return offsets, err
	}
	id, err := f.topicID(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range stored {
		if _, ours := offsets[f.cfg.Topic][p.partition]; !ours {
			continue
		}
		if p.topicID == id {
			offsets[f.cfg.Topic][p.partition] = kgo.NewOffset().At(p.next).WithEpoch(-1)
		} else { // made anew: the broker may have kept the old one's offsets
			offsets[f.cfg.Topic][p.partition] = kgo.NewOffset().AtStart().WithEpoch(-1)
		}
	}
	return offsets, nil
}

// topicID asks with a client of its own, since it is called while the group's
// is joining, and not for each batch.
func (f *Feed) topicID(ctx context.Context) (uuid.UUID, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.askedAt) < askAgain {
		return f.id, nil
	}
	id, err := f.askID(ctx)
	if err == nil {
		f.id, f.askedAt = id, time.Now()
	}
	return id, err
}

func (f *Feed) askID(ctx context.Context) (uuid.UUID, error) {
	cl, err := f.deps.Client()
	if err != nil {
		return uuid.Nil, err
	}
	defer cl.Close()
	topics, err := kadm.NewClient(cl).ListTopics(ctx, f.cfg.Topic)
	if err == nil {
		err = topics[f.cfg.Topic].Err
	}
	if err != nil {
		return uuid.Nil, fmt.Errorf("ask for topic %s: %w", f.cfg.Topic, err)
	}
	return uuid.UUID(topics[f.cfg.Topic].ID), nil
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
