package orders

import (
	"time"

	"github.com/waybillhq/waybill/broker"
)

// Topics is what this module owns in the broker. Orders are not compacted: by
// order id that would erase their history, and the current state is what
// Postgres is for.
func Topics() []broker.Topic {
	return []broker.Topic{{
		Name:           "orders.events",
		Partitions:     6,
		Retention:      7 * 24 * time.Hour,
		RetentionBytes: 1 << 30,
	}}
}
