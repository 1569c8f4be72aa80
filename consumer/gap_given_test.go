package consumer

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// More of one key than is looked up at once.
func TestManyThatWereDroppedAreNoGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.start(keep, gaps(HoldGaps, never))
	w.move("a")
	w.untilMade("a", 1)
	const last = 2*knownAtOnce + 7
	w.exec(`INSERT INTO waybill.dead_action (run, action, by, reason, group_name, topic, partition, "offset", key,
			event_id, type, tenant, class, error, sequence)
		SELECT gen_random_uuid(), 'drop', 'test', '', $1, $2, 0, n, 'a', gen_random_uuid(), '', 'tenant-of-a', 'x', '', n
		FROM generate_series(2, $3) n`, w.group, w.contract.Topic, last)
	w.sent["a"] = last
	w.move("a")
	w.untilMade("a", 1, last+1)
	w.hasMissing("a")
}

// What cannot be read has a number all the same, if that can be.
func TestAnUnreadableEventThatIsDroppedIsNoGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 1)
	w.start(keep, gaps(HoldGaps, never), policy(When("unreadable", Is(ErrUnreadable)).ThenDrop()))
	w.move("a")
	bad := w.record("a")
	bad.Headers = append([]kgo.RecordHeader{{Key: event.HeaderTime, Value: []byte("yesterday")}}, bad.Headers...)
	w.publish(bad)
	w.move("a")
	w.untilMade("a", 1, 3)
	w.hasMissing("a")
}
