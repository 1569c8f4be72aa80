package consumer

import (
	"fmt"
	"sync"
	"testing"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/broker/brokertest"
)

func using(p Protocol) func(*setup) { return func(s *setup) { s.cfg.Protocol = p } }

// typ is the protocol of the group as the broker has it.
func (w *world) typ() string {
	groups, err := broker.ListGroups(w.t.Context(), w.producer)
	if err != nil {
		return err.Error()
	}
	for _, g := range groups {
		if g.Name == w.group {
			return g.Type
		}
	}
	return ""
}

func TestTheBrokerAssignsWhereItIsAskedToAndCan(t *testing.T) {
	t.Parallel()
	for p, want := range map[Protocol]string{Classic: "classic", ServerSide: "consumer"} {
		w := newWorld(t, 2)
		w.start(keep, using(p))
		w.move("a", "b", "c")
		w.settled()
		switch got := w.typ(); {
		case got == want:
		case !brokertest.Kafka() && got != "consumer": // the embedded broker has one protocol, and may not name it
		default:
			t.Errorf("protocol %d: the group is %q, want %q", p, got, want)
		}
	}
}

func TestMembersComeAndGoWhereTheBrokerAssigns(t *testing.T) {
	t.Parallel()
	if !brokertest.Kafka() {
		t.Skip("the embedded broker does not assign: members fall back to the classic protocol, see the test before")
	}
	w := newWorld(t, 6)
	w.comeAndGo(ServerSide, ServerSide)
	if got := w.typ(); got != "consumer" {
		t.Errorf("the group is %q", got)
	}
}

// As while a release is rolled out that changes the protocol.
func TestMembersOfBothProtocolsShareAGroup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 6)
	w.comeAndGo(Classic, ServerSide)
}

// comeAndGo has members join and leave another under load.
func (w *world) comeAndGo(steady, others Protocol) {
	w.t.Helper()
	first := w.start(keep, using(steady))
	var load sync.WaitGroup
	load.Go(func() {
		for i := range 150 {
			w.move(fmt.Sprint("k", i%17), fmt.Sprint("k", i%5), fmt.Sprint("k", i%29))
		}
	})
	for range 3 {
		m := w.start(keep, using(others))
		w.until("both work", func() bool { return w.members() == 2 })
		m.end(w.t)
	}
	load.Wait()
	w.settled()
	first.end(w.t)
}

func TestAProtocolThatIsNoneIsRefused(t *testing.T) {
	if Protocol(7).check() == nil || Classic.check() != nil || ServerSide.check() != nil {
		t.Error("want 7 refused alone")
	}
}
