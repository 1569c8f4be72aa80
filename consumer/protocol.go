package consumer

import (
	"fmt"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Protocol is how the members of a group share its partitions out. What the
// package promises rests on neither: ownership is fenced in the database.
type Protocol int

const (
	// Classic has one of the members assign partitions, cooperatively: only those
	// that move stand still for it. A member that was killed is noticed within
	// the session that this package asks for, see Config.Drain.
	Classic Protocol = iota
	// ServerSide has the broker assign them (KIP-848), where it can: from Kafka
	// 4.0, best from 4.3. Where it cannot, the group is Classic. How long a
	// member that was killed holds its partitions is then the broker's setting
	// group.consumer.session.timeout.ms, 45 s by default, and how soon partitions
	// move follows group.consumer.heartbeat.interval.ms, 5 s.
	//
	// A group may be changed over member by member, and back.
	ServerSide
)

func (p Protocol) check() error {
	if p < Classic || p > ServerSide {
		return fmt.Errorf("protocol %d is none: use the constants of package consumer", p)
	}
	return nil
}

// options have the client ask for the protocol. It asks the broker first, and
// falls back to the classic one.
func (p Protocol) options() []kgo.Opt {
	out := []kgo.Opt{kgo.Balancers(kgo.CooperativeStickyBalancer())}
	if p == ServerSide {
		out = append(out, kgo.ServerSideBalancer())
	}
	return out
}
