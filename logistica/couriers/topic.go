package couriers

import (
	"time"

	"github.com/waybillhq/waybill/broker"
)

// Topics is what this module owns in the broker: what it says of orders, and
// what it says of couriers. The latter carries positions too, which are most of
// it by far, so its size is what bounds it.
func Topics() []broker.Topic {
	return []broker.Topic{
		{Name: "couriers.reservations", Partitions: 6, Retention: 7 * 24 * time.Hour, RetentionBytes: 1 << 30},
		{Name: "couriers.events", Partitions: 6, Retention: 7 * 24 * time.Hour, RetentionBytes: 1 << 30},
	}
}
