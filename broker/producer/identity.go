package producer

import (
	"context"
	"fmt"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// identity is what the broker knows a producer by.
type identity struct {
	producer int64
	epoch    int16
}

var noIdentity = identity{-1, -1}

// newIdentity asks for one.
func (p *Producer[T]) newIdentity(ctx context.Context) (identity, error) {
	req := kmsg.NewPtrInitProducerIDRequest()
	req.ProducerID, req.ProducerEpoch = -1, -1
	resp, err := req.RequestWith(ctx, p.client)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	if err != nil {
		return noIdentity, fmt.Errorf("ask for a producer id: %w", err)
	}
	return identity{resp.ProducerID, resp.ProducerEpoch}, nil
}
