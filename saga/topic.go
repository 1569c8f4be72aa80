package saga

import (
	"time"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/saga/contracts"
)

// Topics are those that this package owns, for broker.Declare.
func Topics() []broker.Topic {
	return []broker.Topic{{
		Name:       contracts.StepOverdue{}.EventContract().Topic,
		Partitions: 6,
		Retention:  7 * 24 * time.Hour,
	}}
}
