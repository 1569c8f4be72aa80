package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker/producer"
	"github.com/waybillhq/waybill/pg/wal"
)

// Exactly once: events are published in transactions of the broker's, and each
// transaction ends with a record that lists its events (the position). A
// transaction commits only when the marks of the one before are written. So at
// any instant all that is committed and not marked stands in the last
// position: a relay that starts marks it, and then skips what is marked.
//
// The position names events, not only how far the WAL was read: LSNs start
// anew on another server, and an event skipped by such a number would be lost.

// transactions is how a session publishes exactly once.
type transactions struct {
	s       *session
	mu      sync.Mutex // held while a transaction ends: nothing is queued meanwhile
	place   *producer.Partition[tag]
	pending struct {
		sync.Mutex
		acked []*batch
		count int
	}
	encoded []byte
	queued  int
	broken  error // the open transaction can be committed no more
}

// Limits of a transaction. Readers of committed records wait for its end.
const (
	transactionEvery  = 10 * time.Millisecond
	transactionEvents = 10_000
)

// PositionTopic is where a relay that publishes exactly once notes what it
// published last; the name is its transactional id too. The server is in it:
// databases of two servers may have one name, and their relays one Kafka.
func PositionTopic(ctx context.Context, db *pgxpool.Pool, slot string) (string, error) {
	var server int64
	if err := db.QueryRow(ctx, `SELECT system_identifier FROM pg_control_system()`).Scan(&server); err != nil {
		return "", fmt.Errorf("ask for the server's identity: %w", err)
	}
	return "waybill.relay." + slot + "." + strconv.FormatInt(server, 36), nil
}

// begin takes the transactional id over and marks what the last relay committed
// and had not marked.
func (x *transactions) begin(ctx context.Context) error {
	client := x.s.client
	topic := x.s.position
	if err := createPositions(ctx, client, topic); err != nil {
		return err
	}
	if err := x.s.producer.Begin(ctx); err != nil {
		return err
	}
	entries, err := x.lastPosition(ctx, topic)
	if err != nil {
		return fmt.Errorf("read the position in topic %s: %w", topic, err)
	}
	if err := x.s.markMissing(ctx, entries); err != nil {
		return err
	}
	for i := range entries {
		x.s.reader.resent.add(entries[i].id, entries[i].lsn)
	}
	t, err := x.s.producer.Topic(ctx, topic)
	if err != nil {
		return err
	}
	x.place = t.Partition(0)
	return nil
}

// createPositions makes the topic if it is not there: who may not make topics may
// be given one.
func createPositions(ctx context.Context, client *kgo.Client, topic string) error {
	adm := kadm.NewClient(client)
	resp, err := adm.CreateTopic(ctx, 1, -1, map[string]*string{
		"cleanup.policy":    kadm.StringPtr("compact"),
		"max.message.bytes": kadm.StringPtr("1048588"), // of the largest position, half would do
	}, topic)
	if err == nil {
		err = resp.Err
	}
	if err == nil || errors.Is(err, kerr.TopicAlreadyExists) {
		return nil
	}
	if there, listErr := adm.ListTopics(ctx, topic); listErr != nil || there[topic].Err != nil || len(there[topic].Partitions) == 0 {
		return fmt.Errorf("create topic %s, where the relay keeps its position: %w", topic, err)
	}
	return nil
}

// acknowledged keeps a batch until its transaction has committed.
func (x *transactions) acknowledged(b *batch) {
	if b.Partition == x.place {
		x.s.producer.Release(b)
		return
	}
	x.pending.Lock()
	defer x.pending.Unlock()
	x.pending.acked = append(x.pending.acked, b)
	x.pending.count += len(b.Tags)
}

// run ends transactions until ctx does, and then the last one.
func (x *transactions) run(ctx context.Context) error {
	tick := time.NewTicker(transactionEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := x.endUnhurried(ctx); err != nil {
			return err
		}
	}
}

// endUnhurried ends the transaction though ctx may end meanwhile: an orderly stop
// leaves none half ended.
func (x *transactions) endUnhurried(ctx context.Context) error {
	late, cancel := linger(ctx, drainTimeout)
	defer cancel()
	return x.end(late)
}

// append queues a record in the open transaction, ending it first if it is
// large enough.
func (x *transactions) append(ctx context.Context, q *producer.Partition[tag], rec *producer.Record, t tag) (bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.queued >= transactionEvents {
		late, cancel := linger(ctx, drainTimeout)
		defer cancel()
		if err := x.endLocked(late); err != nil {
			return false, err
		}
	}
	x.queued++
	return q.Append(rec, t), nil
}

// end commits what was published since the last time.
func (x *transactions) end(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.endLocked(ctx)
}

func (x *transactions) endLocked(ctx context.Context) error {
	if x.broken != nil {
		return x.broken
	}
	if err := x.s.producer.Flush(ctx); err != nil {
		return err
	}
	x.queued = 0
	acked := x.take()
	if len(acked) == 0 {
		// Partitions may have joined it of which nothing was taken: open, it
		// would be aborted some time, and the producer with it.
		return x.s.producer.Commit(ctx)
	}
	x.broken = x.commit(ctx, acked)
	return x.broken
}

// commit ends the transaction that has these batches. After an error they are in
// no position, and a later one must not commit them.
func (x *transactions) commit(ctx context.Context, acked []*batch) error {
	if err := x.writePosition(ctx, acked); err != nil {
		return err
	}
	// What the last transaction published is marked: it will not be in a
	// position any more.
	if err := x.s.ledger.waitAcked(ctx); err != nil {
		return err
	}
	if err := x.s.producer.Commit(ctx); err != nil {
		return err
	}
	for _, b := range acked {
		x.s.metrics.published(b, x.s.ledger)
		x.s.ledger.acknowledge(b)
	}
	return nil
}

// linger is ctx with some more time once it has ended.
func linger(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	late, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(d, cancel) })
	return late, func() { stop(); cancel() }
}

func (x *transactions) take() []*batch {
	x.pending.Lock()
	defer x.pending.Unlock()
	acked := x.pending.acked
	x.pending.acked, x.pending.count = nil, 0
	return acked
}

// entry is one event of a position.
type entry struct {
	id        uuid.UUID
	lsn       wal.LSN
	partition int32
	offset    int64
}

const entrySize = 16 + 8 + 4 + 8

func (x *transactions) writePosition(ctx context.Context, acked []*batch) error {
	x.encoded = append(x.encoded[:0], positionVersion)
	var lsns []wal.LSN
	for _, b := range acked {
		lsns = x.s.ledger.lsns(b.Tags, lsns[:0])
		for i := range b.Tags {
			offset := b.Base
			if offset >= 0 {
				offset += int64(i)
			}
			x.encoded = appendEntry(x.encoded, &entry{b.Tags[i].id, lsns[i], b.Partition.Index, offset})
		}
	}
	rec := producer.Record{Key: []byte(x.s.cfg.Slot), Value: x.encoded}
	if !x.place.Append(&rec, tag{}) {
		return producer.ErrClosed
	}
	if err := x.place.Drain(ctx); err != nil {
		return fmt.Errorf("write the position: %w", err)
	}
	return nil
}

const positionVersion = 1

func appendEntry(b []byte, e *entry) []byte {
	b = append(b, e.id[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(e.lsn))
	b = binary.BigEndian.AppendUint32(b, uint32(e.partition))
	return binary.BigEndian.AppendUint64(b, uint64(e.offset))
}

var errPosition = errors.New("malformed position")

func readEntries(b []byte) ([]entry, error) {
	if len(b) == 0 || b[0] != positionVersion || (len(b)-1)%entrySize != 0 {
		return nil, fmt.Errorf("%w of %d bytes", errPosition, len(b))
	}
	var out []entry
	for b = b[1:]; len(b) > 0; b = b[entrySize:] {
		e := entry{
			lsn:       wal.LSN(binary.BigEndian.Uint64(b[16:])),
			partition: int32(binary.BigEndian.Uint32(b[24:])),
			offset:    int64(binary.BigEndian.Uint64(b[28:])),
		}
		copy(e.id[:], b)
		out = append(out, e)
	}
	return out, nil
}

// markMissing marks what a relay before us published and had not marked.
func (s *session) markMissing(ctx context.Context, entries []entry) error {
	ids := make([]uuid.UUID, len(entries))
	partitions, offsets, lsns := make([]int32, len(entries)), make([]int64, len(entries)), make([]string, len(entries))
	for i, e := range entries {
		ids[i], partitions[i], offsets[i], lsns[i] = e.id, e.partition, e.offset, e.lsn.String()
	}
	done, err := s.db.Exec(ctx, `INSERT INTO waybill.outbox_published (id, published_at, log_partition, log_offset, commit_lsn)
		SELECT n.id, now(), n.partition, n.log_offset, n.lsn::pg_lsn
		FROM unnest($1::uuid[], $2::integer[], $3::bigint[], $4::text[]) n (id, partition, log_offset, lsn)
		WHERE NOT EXISTS (SELECT FROM waybill.outbox_published p WHERE p.id = n.id)`, ids, partitions, offsets, lsns)
	if err != nil {
		return fmt.Errorf("mark what was published last: %w", err)
	}
	if n := done.RowsAffected(); n > 0 {
		s.log.InfoContext(ctx, "marked events that were published and not marked", "events", n)
	}
	return nil
}

// lastPosition is the newest one of a transaction that committed.
func (x *transactions) lastPosition(ctx context.Context, topic string) ([]entry, error) {
	ends, err := x.readableEnd(ctx, topic)
	if err != nil {
		return nil, err
	}
	for back := int64(64); ; back *= 16 {
		from := max(ends.start, ends.end-back)
		rec, err := x.lastIn(ctx, topic, from, ends.end)
		if err != nil {
			return nil, err
		}
		if rec != nil {
			return readEntries(rec.Value)
		}
		if from == ends.start {
			return nil, nil
		}
	}
}

type span struct{ start, end int64 }

func (x *transactions) readableEnd(ctx context.Context, topic string) (s span, err error) {
	adm := kadm.NewClient(x.s.client)
	starts, err := adm.ListStartOffsets(ctx, topic)
	if err != nil {
		return s, err
	}
	ends, err := adm.ListCommittedOffsets(ctx, topic)
	if err != nil {
		return s, err
	}
	start, known := starts.Lookup(topic, 0)
	end, too := ends.Lookup(topic, 0)
	if !known || !too { // it would pass for empty
		return s, errors.Join(starts.Error(), ends.Error(), kerr.UnknownTopicOrPartition)
	}
	return span{start.Offset, end.Offset}, errors.Join(start.Err, end.Err)
}

// quietEnd is how long a log that gives nothing more is taken to have ended: its
// last offsets may belong to nothing that is still there. No log of a broker we
// know ends so; one that is only slow must not be taken for it.
const quietEnd = 30 * time.Second

// lastIn is the last committed record from one offset up to another.
func (x *transactions) lastIn(ctx context.Context, topic string, from, end int64) (last *kgo.Record, err error) {
	if from >= end {
		return nil, nil
	}
	client, err := x.s.newClient(
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().At(from)}}),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
	)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	for at := from - 1; at < end-1; {
		poll, cancel := context.WithTimeout(ctx, quietEnd)
		fetched := client.PollFetches(poll)
		quiet := poll.Err() != nil
		cancel()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if quiet && fetched.NumRecords() == 0 {
			return last, nil
		}
		if err := fetched.Err(); err != nil {
			return nil, err
		}
		fetched.EachRecord(func(r *kgo.Record) {
			at = r.Offset
			if !r.Attrs.IsControl() {
				last = r
			}
		})
	}
	return last, nil
}
