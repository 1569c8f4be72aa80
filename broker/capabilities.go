package broker

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AskCapabilities is what the broker that cl reaches says of itself. The one
// built in offers no transactions, as it could not keep them across a crash; nor
// does it compact. Told apart by configuration instead, one that runs in another
// process would be taken for a Kafka.
func AskCapabilities(ctx context.Context, cl *kgo.Client) (caps Capabilities, err error) {
	resp, err := kmsg.NewPtrApiVersionsRequest().RequestWith(ctx, cl)
	if err != nil {
		return caps, fmt.Errorf("ask the broker what it can do: %w", err)
	}
	for _, k := range resp.ApiKeys {
		switch k.ApiKey {
		case kmsg.NewPtrEndTxnRequest().Key():
			caps.Transactions, caps.Compaction = true, true
		case kmsg.NewPtrShareFetchRequest().Key():
			caps.ShareGroups = true
		}
	}
	return caps, nil
}
