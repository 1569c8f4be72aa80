// Package projection makes read models of sets of events: a consumer group reads
// topics, whatever types they carry, and a [Sink] gets what is there in one call.
//
// It promises what the sink can keep:
//
//   - [Log], in Postgres, writes in the transaction that has the claims on the
//     events: each event is in it once, and so is whatever a sink adds in the same
//     transaction for the events that Append says are new. That holds also when a
//     group is reset and reads everything again.
//   - package projection/clickhouse writes elsewhere, before that transaction
//     commits: an event may be written again after a crash, under the same id, and
//     reading makes one of them.
//
// Events of a key come in their order; between keys, partitions and topics there
// is none, and a sink must not mind. A batch that fails is done again in halves,
// until the event that fails stands alone; see package consumer.
package projection

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

// Event is a record of the log, with its body as JSON.
type Event struct {
	event.Envelope
	event.Position
	Value []byte // as it was published, for a Decoder; not to be changed
	Data  []byte // as its writer wrote it: times are numbers, unions are bare
}

// Decoder reads bodies of any contract. A registry.Decoder does.
type Decoder interface {
	DecodeAny(ctx context.Context, value []byte) (registry.Info, []byte, error)
}

// Sink takes events of a topic, each key's in their order. An event that
// it was given and that it returned no error for is not given again unless tx,
// the consumer's, does not commit. It must not end tx.
type Sink interface {
	Write(ctx context.Context, tx pgx.Tx, es []Event) error
}

// Source is a topic, and which of its events.
type Source struct {
	Topic  string
	Filter consumer.Filter
}

// Subscribe has the group give what the sources carry to the sink.
func Subscribe(g *consumer.Group, d Decoder, to Sink, from ...Source) {
	for _, s := range from {
		consumer.OnAnyBatch(g, s.Topic, s.Filter, func(ctx context.Context, tx pgx.Tx, rs []consumer.Raw) error {
			es, err := read(ctx, d, rs)
			if err != nil {
				return err
			}
			return to.Write(ctx, tx, es)
		})
	}
}

// read decodes records. One without a value tells nothing and is left out: what
// a compacted topic forgets is not what happened.
func read(ctx context.Context, d Decoder, rs []consumer.Raw) ([]Event, error) {
	es := make([]Event, 0, len(rs))
	for _, r := range rs {
		if r.Value == nil {
			continue
		}
		_, data, err := d.DecodeAny(ctx, r.Value)
		if err != nil {
			return nil, unreadable(r, err)
		}
		es = append(es, Event{r.Envelope, r.Position, r.Value, data})
	}
	return es, nil
}

func unreadable(r consumer.Raw, err error) error {
	if errors.Is(err, registry.ErrUnavailable) {
		return fmt.Errorf("read %s: %w", r.Type, err)
	}
	return fmt.Errorf("read %s: %w: %w", r.Type, consumer.ErrUnreadable, err)
}
