package broker

import (
	"errors"
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// ErrNoTransactions is what needs transactions on a broker that offers none.
var ErrNoTransactions = errors.New("the broker offers no transactions")

// Transact makes a client that reads in a group and produces in transactions
// which commit the group's offsets; the options must name the group and the
// transactional id. It connects lazily, as Client does.
func (c Config) Transact(opts ...kgo.Opt) (*kgo.GroupTransactSession, error) {
	base, err := c.options()
	if err != nil {
		return nil, err
	}
	s, err := kgo.NewGroupTransactSession(append(base, opts...)...)
	if err != nil {
		return nil, fmt.Errorf("kafka client: %w", err)
	}
	return s, nil
}
