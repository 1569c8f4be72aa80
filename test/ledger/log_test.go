package ledger

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
)

// entry is a record of the log.
type entry struct {
	id        string
	key       string
	token     string
	n         int64
	partition int32
	offset    int64
	content   [sha256.Size]byte // of key, value and headers
	at        time.Time         // when it was read
}

func (h *house) client(opts ...kgo.Opt) *kgo.Client {
	h.t.Helper()
	cl, err := broker.Config{Brokers: []string{h.kafka}, Logger: slog.New(slog.DiscardHandler)}.Client(append([]kgo.Opt{
		kgo.RetryBackoffFn(func(int) time.Duration { return 100 * time.Millisecond }),
		kgo.MetadataMinAge(100 * time.Millisecond),
	}, opts...)...)
	h.must(err)
	h.t.Cleanup(cl.Close)
	return cl
}

// reader reads the log from its start. It sees what a careful reader sees,
// committed records, and besides them the markers of transactions, without
// which the end of the log cannot be told.
func (h *house) reader() *kgo.Client {
	h.t.Helper()
	return h.client(
		kgo.ConsumeTopics(h.contract.Topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords(),
	)
}

func (h *house) declareTopic() {
	h.t.Helper()
	h.must(broker.Declare(h.t.Context(), h.client(), h.caps, broker.Topic{Name: h.contract.Topic, Partitions: 4}))
}

func (h *house) entryOf(r *kgo.Record) (entry, error) {
	e := entry{key: string(r.Key), partition: r.Partition, offset: r.Offset, at: time.Now()}
	sum := sha256.New()
	put := func(b []byte) {
		_ = binary.Write(sum, binary.BigEndian, int64(len(b)))
		sum.Write(b)
	}
	put(r.Key)
	put(r.Value)
	for _, header := range r.Headers {
		if header.Key == "ce_id" {
			e.id = string(header.Value)
		}
		put([]byte(header.Key))
		put(header.Value)
	}
	sum.Sum(e.content[:0])
	var body noted
	if len(r.Value) < 5 {
		return e, fmt.Errorf("record %d@%d has a value of %d bytes", r.Partition, r.Offset, len(r.Value))
	}
	if _, err := h.contract.Schema.Decode(r.Value[5:], &body); err != nil {
		return e, fmt.Errorf("record %d@%d: %w", r.Partition, r.Offset, err)
	}
	e.token, e.n = body.Note, body.N
	return e, nil
}

// tail follows the log while processes die.
type tail struct {
	mu      sync.Mutex
	tokens  map[string]time.Time // when first read
	records int
	control int
}

func (h *house) follow() *tail {
	t := &tail{tokens: map[string]time.Time{}}
	cl := h.reader()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	h.t.Cleanup(func() { cancel(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			cl.PollFetches(ctx).EachRecord(func(r *kgo.Record) {
				if r.Attrs.IsControl() {
					t.mu.Lock()
					t.control++
					t.mu.Unlock()
					return
				}
				e, err := h.entryOf(r)
				if err != nil {
					h.trouble(err)
				}
				t.enter(e)
			})
		}
	}()
	return t
}

func (t *tail) enter(e entry) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.records++
	if _, ok := t.tokens[e.token]; !ok {
		t.tokens[e.token] = e.at
	}
}

func (t *tail) count() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.records
}

func (t *tail) markers() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.control
}

func (t *tail) has(token string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, ok := t.tokens[token]
	return ok
}

// missing are up to five of the facts that were not read yet, and how many
// there are, or at least are.
func (t *tail) missing(facts map[string]fact) (some []string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n = len(facts) - len(t.tokens); n > 100 { // not looked at one by one: it would keep the reader from its work
		return nil, n
	}
	n = 0
	for token := range facts {
		if _, ok := t.tokens[token]; !ok {
			if n++; n <= 5 {
				some = append(some, token)
			}
		}
	}
	return some, n
}

// readLog reads the whole log as it stands, by a reader that saw none of the
// kills.
func (h *house) readLog() []entry {
	h.t.Helper()
	ctx, cancel := context.WithTimeout(h.t.Context(), 2*time.Minute)
	defer cancel()
	cl := h.reader()
	ends, err := h.ends(ctx, kadm.NewClient(cl))
	h.must(err)
	var all []entry
	for {
		ends.Each(func(o kadm.ListedOffset) {
			if o.Offset == 0 {
				delete(ends[o.Topic], o.Partition)
			}
		})
		if len(ends[h.contract.Topic]) == 0 {
			return all
		}
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			h.t.Fatalf("the log cannot be read to its end: %v is left", ends)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if r.Offset+1 >= ends[r.Topic][r.Partition].Offset {
				delete(ends[r.Topic], r.Partition)
			}
			if r.Attrs.IsControl() {
				return
			}
			e, err := h.entryOf(r)
			h.must(err)
			all = append(all, e)
		})
	}
}

func (h *house) ends(ctx context.Context, adm *kadm.Client) (kadm.ListedOffsets, error) {
	if h.mode.once {
		return adm.ListCommittedOffsets(ctx, h.contract.Topic)
	}
	return adm.ListEndOffsets(ctx, h.contract.Topic)
}
