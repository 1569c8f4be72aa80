package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/registry"
)

// Decoder reads a record's value as JSON. A registry.Decoder does.
type Decoder interface {
	DecodeAny(ctx context.Context, value []byte) (registry.Info, []byte, error)
}

// On hands the records of topic that f admits over to endpoints, in the group's
// transactions, as many at a time as there are. Records without a tenant are
// passed over; give the group [Store.Audience] for its Config.Tenants, and so are
// those of tenants without an endpoint, at no transaction's cost. wake, which may
// be nil, is told of each set, so that a sender in this process need not look for
// it; see [Sender.Wake].
//
// Bodies are {"type", "timestamp", "data"} as Standard Webhooks recommends, data
// being the event as its schema has it, or as it is if it is JSON already. They
// are made before the transaction, which does not wait for the registry.
func On(g *consumer.Group, s *Store, topic string, f consumer.Filter, d Decoder, wake func()) {
	read := func(ctx context.Context, r consumer.Raw) (Event, error) {
		if r.Tenant == "" {
			return Event{}, nil
		}
		body, err := bodyOf(ctx, d, &r)
		if err != nil {
			return Event{}, err
		}
		key := string(r.Key)
		if r.Subject != "" {
			key = r.Subject
		}
		return Event{ID: r.ID, Tenant: r.Tenant, Type: r.Type, Key: key, Body: body}, nil
	}
	consumer.OnAnyBatchRead(g, topic, f, read, func(ctx context.Context, tx pgx.Tx, all []Event) error {
		events := slices.DeleteFunc(all, func(e Event) bool { return e.Tenant == "" })
		if len(events) == 0 {
			return nil
		}
		if err := s.Fan(ctx, tx, events...); err != nil {
			return err
		}
		if wake != nil {
			wake()
		}
		return nil
	})
}

// payload is a body after Standard Webhooks.
type payload struct {
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"` // of the event, not of the attempt
	Data      json.RawMessage `json:"data"`
}

func bodyOf(ctx context.Context, d Decoder, r *consumer.Raw) ([]byte, error) {
	data := []byte("null") // a tombstone
	if r.Value != nil {
		var err error
		_, data, err = d.DecodeAny(ctx, r.Value)
		if errors.Is(err, registry.ErrNotWireFormat) && json.Valid(r.Value) {
			data, err = r.Value, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read event for webhooks: %w", err)
		}
	}
	return json.Marshal(payload{r.Type, r.Time.UTC(), data})
}
