package relay_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/outbox/relay"
)

// keysAt are n accounts of one partition of three.
func (w *world) keysAt(partition, n int) (keys []string) {
	p := kgo.StickyKeyPartitioner(nil).ForTopic(w.contract.Topic)
	for i := 0; len(keys) < n; i++ {
		if k := fmt.Sprint("k", i); p.Partition(&kgo.Record{Key: []byte(k)}, 3) == partition {
			keys = append(keys, k)
		}
	}
	return keys
}

// While a partition is stopped the topic gets more: keys move, and what they
// kept back moves with them.
func TestPartitionsAddedWhileOneIsStoppedLoseNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := w.keysAt(2, 12)
	w.topicLimit("100000")
	log, stop := w.loudRelay()
	w.addHuge(keys[0], 1)
	w.told(log, 1, "an event is refused")
	for _, k := range keys {
		w.addAll(k, 2, 4)
	}
	w.caughtUp()
	stop()
	_, err := kadm.NewClient(w.engine.Client(t)).CreatePartitions(t.Context(), 5, w.contract.Topic)
	must(t, err)
	w.topicLimit("1000000")
	w.loudRelay()
	got, _ := story(t, w.read(1+3*len(keys)))
	for i, k := range keys {
		want := []int64{1, 2, 3, 4}
		if i > 0 {
			want = want[1:]
		}
		if !slices.Equal(got[k], want) {
			t.Errorf("%s: published %v", k, got[k])
		}
	}
	w.eventually(func() (bool, string) { return w.stops() == 0, "a partition is still stopped" })
}

// The topic of a stopped partition is made anew with fewer.
func TestAStoppedPartitionThatIsGoneLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	keys := w.keysAt(2, 6)
	w.topicLimit("100000")
	log, stop := w.loudRelay()
	w.addHuge(keys[0], 1)
	w.told(log, 1, "an event is refused")
	for _, k := range keys {
		w.addAll(k, 2, 4)
	}
	w.caughtUp()
	stop()
	admin := kadm.NewClient(w.engine.Client(t))
	_, err := admin.DeleteTopic(t.Context(), w.contract.Topic)
	must(t, err)
	w.eventually(func() (bool, string) {
		_, err := admin.CreateTopic(t.Context(), 2, 1, nil, w.contract.Topic)
		return err == nil, fmt.Sprint(err)
	})
	w.loudRelay()
	got, _ := story(t, w.read(1+3*len(keys)))
	if !slices.Equal(got[keys[0]], upTo(4)) || len(got) != len(keys) {
		t.Errorf("published %v", got)
	}
	w.eventually(func() (bool, string) { return w.stops() == 0, "a partition is still stopped" })
}

// A topic that was not there comes, and refuses the first event of all: that
// stops one partition. The one it was missed for is given up meanwhile, once,
// however often that is looked at.
func TestATopicThatComesAndRefusesStopsOnePartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.keys()
	admin := kadm.NewClient(w.engine.Client(t))
	_, err := admin.DeleteTopic(t.Context(), w.contract.Topic)
	must(t, err)
	log, _ := w.loudRelay()
	w.add(one, 1)
	w.addHuge(one, 2)
	w.addAll(one, 3, 5)
	w.addAll(other, 1, 10)
	w.told(log, 1, "an event is refused", "UNKNOWN_TOPIC")
	w.exec(`INSERT INTO waybill.outbox_skips (event_id, reason, asked_by) SELECT event_id, 'no topic', 'test' FROM waybill.outbox_stopped`)
	w.told(log, 3, "refused") // whose it is now
	limit := "100000"
	_, err = admin.CreateTopic(t.Context(), 3, 1, map[string]*string{"max.message.bytes": &limit}, w.contract.Topic)
	must(t, err)
	w.told(log, 1, "an event is refused", "MESSAGE_TOO_LARGE")
	w.marked(1 + 10)
	w.addAll(other, 11, 20)
	w.marked(1 + 20)
	w.topicLimit("1000000")
	w.marked(25)
	got, _ := story(t, w.read(24))
	if !slices.Equal(got[one], upTo(5)[1:]) || !slices.Equal(got[other], upTo(20)) {
		t.Errorf("published %v", got)
	}
	if w.marks() != 25 || w.incidents("event_skipped") != 1 {
		t.Errorf("%d marks, %d incidents", w.marks(), w.incidents("event_skipped"))
	}
}

// Events no record can be made of stand behind a refused one: that is told
// once, and the refused one is what the partition waits for.
func TestUnfitEventsBehindARefusedOneAreNotTold(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.topicLimit("100000")
	log, _ := w.loudRelay()
	w.add("a", 1)
	w.marked(1)
	w.addHuge("a", 2)
	w.told(log, 1, "an event is refused", "MESSAGE_TOO_LARGE")
	w.exec(`INSERT INTO waybill.outbox_events
		SELECT gen_random_uuid(), topic, subject, source, type, time, tenant, n, correlation_id, causation_id, trace_parent, 12345, body
		FROM waybill.outbox_events, generate_series(3, 50) n WHERE sequence = 1`)
	w.told(log, 1, "refused again")
	if n := w.incidents("partition_stopped"); n != 1 {
		t.Errorf("%d incidents", n)
	}
	var waits bool
	must(t, w.db.QueryRow(t.Context(), `SELECT e.sequence = 2 FROM waybill.outbox_stopped s JOIN waybill.outbox_events e ON e.id = s.event_id`).Scan(&waits))
	if !waits {
		t.Error("the partition waits for another event")
	}
}

// rewind has the slot send again what it sent since it was copied.
func (w *world) rewind(copied string) {
	slot := relay.SlotName(w.db.Config().ConnConfig.Database)
	w.eventually(func() (bool, string) {
		_, err := w.db.Exec(w.t.Context(), `SELECT pg_drop_replication_slot($1)`, slot)
		return err == nil, fmt.Sprint(err)
	})
	w.exec(`SELECT pg_copy_logical_replication_slot($1, $2)`, copied, slot)
	w.exec(`SELECT pg_drop_replication_slot($1)`, copied)
}

// A server that crashed sends the given-up event again.
func TestAGivenUpEventIsNotPublishedWhenTheSlotSendsItAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.topicLimit("100000")
	log, stop := w.loudRelay()
	w.add("a", 1)
	w.marked(1)
	w.caughtUp()
	w.exec(`SELECT pg_copy_logical_replication_slot($1, 'copied')`, relay.SlotName(w.db.Config().ConnConfig.Database))
	w.addHuge("a", 2)
	w.add("a", 3)
	w.told(log, 1, "an event is refused")
	w.exec(`INSERT INTO waybill.outbox_skips (event_id, reason, asked_by) SELECT event_id, 'too large', 'test' FROM waybill.outbox_stopped`)
	w.marked(3)
	stop()
	w.rewind("copied")
	w.topicLimit("1000000")
	w.relay()
	w.add("a", 4)
	got, copies := story(t, w.read(3))
	if !slices.Equal(got["a"], []int64{1, 3, 4}) || copies > 0 {
		t.Errorf("published %v, %d copies", got, copies)
	}
}

// A relay without marks has no table to find events in that it keeps back.
func TestARelayWithoutMarksHoldsWhatIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.cfg.NoMarks = true
	one, other := w.keys()
	w.topicLimit("100000")
	log, _ := w.loudRelay()
	w.addAll(one, 1, 20)
	w.addHuge(one, 21)
	w.addAll(one, 22, 40)
	w.addAll(other, 1, 10)
	w.told(log, 1, "an event is refused")
	w.topicLimit("1000000")
	w.told(log, 1, "a stopped partition goes on")
	got, copies := story(t, w.read(50))
	if !slices.Equal(got[one], upTo(40)) || !slices.Equal(got[other], upTo(10)) || copies > 0 {
		t.Errorf("published %v, %d copies", got, copies)
	}
}
