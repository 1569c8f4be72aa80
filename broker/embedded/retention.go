package embedded

import (
	"context"
	"time"
)

// retain applies retention on its own clock: the log applies it by itself
// only after a topic was created or altered in the same process, so after a
// restart nothing would ever be deleted.
func (b *Broker) retain(ctx context.Context) {
	defer close(b.done)
	tick := time.NewTicker(defaultRetentionCheck * time.Second)
	defer tick.Stop()
	for {
		b.cluster.ApplyRetention()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}
