package relay_test

import (
	"slices"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/relay"
)

func (w *world) marks() (n int) {
	w.t.Helper()
	must(w.t, w.db.QueryRow(w.t.Context(), `SELECT count(*) FROM waybill.outbox_published`).Scan(&n))
	return n
}

func TestAnEventInTheWALAloneLeavesNoMark(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, relay.Message)
	w.relay()
	w.addAll("a", 1, 20)
	w.read(20)
	w.caughtUp()
	if n := w.marks(); n > 0 {
		t.Errorf("%d marks", n)
	}
}

// As much waits behind a refused event as the relay reads ahead: it goes on
// none the less once the event is taken, or given up.
func TestAFullLedgerBehindARefusedEventIsNoEnd(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, relay.Message)
	w.cfg.MaxUnmarked = 20
	w.topicLimit("100000")
	log, _ := w.loudRelay()
	w.addHuge("a", 1)
	w.addHuge("a", 2)
	w.addAll("a", 3, 60)
	w.told(log, 1, "an event is refused")
	w.exec(`INSERT INTO waybill.outbox_skips (event_id, reason, asked_by) SELECT event_id, 'too large', 'test' FROM waybill.outbox_stopped`)
	w.told(log, 2, "an event is refused")
	w.topicLimit("1000000")
	if got, _ := story(t, w.read(59)); !slices.Equal(got["a"], upTo(60)[1:]) {
		t.Errorf("published %v", got)
	}
	w.caughtUp()
}

// Without a table the relay stands at an event whose topic is not there.
func TestAnEventOfAMissingTopicInTheWALAloneCanBeGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, relay.Message)
	log, _ := w.loudRelay()
	lost := *w.contract
	lost.Topic += ".none"
	ob := outbox.New([]*event.Contract{&lost}, outbox.Config{Messages: true})
	must(t, pgx.BeginFunc(t.Context(), w.db, func(tx pgx.Tx) error {
		return ob.Add(tenant(t.Context()), tx, noted{contract: &lost, Account: "a", N: 1})
	}))
	w.add("a", 2)
	w.told(log, 1, "relay stopped", "UNKNOWN_TOPIC")
	if w.stops() != 1 {
		t.Errorf("%d stops: nobody can see which event it is", w.stops())
	}
	w.exec(`INSERT INTO waybill.outbox_skips (event_id, reason, asked_by) SELECT event_id, 'no topic', 'test' FROM waybill.outbox_stopped`)
	if got, _ := story(t, w.read(1)); !slices.Equal(got["a"], []int64{2}) {
		t.Errorf("published %v", got)
	}
	w.caughtUp()
	if w.incidents("event_skipped") != 1 {
		t.Errorf("%d incidents", w.incidents("event_skipped"))
	}
	w.eventually(func() (bool, string) { return w.stops() == 0, "it is still told as stopped" })
}

// An operator changes the mode while rows wait: in the slot, behind a refused
// event, and from writers that have not heard of it yet.
func TestRowsArePublishedByARelayThatReadsMessages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.keys()
	w.topicLimit("100000")
	log, stop := w.loudRelay()
	w.addHuge(one, 1)
	w.addAll(one, 2, 10)
	w.told(log, 1, "an event is refused")
	w.caughtUp()
	stop()
	w.addAll(other, 1, 10)
	rows := w.ob
	w.cfg.Mode = relay.Message
	w.ob = outbox.New([]*event.Contract{w.contract}, outbox.Config{Messages: true})
	w.topicLimit("1000000")
	w.loudRelay()
	w.addAll(other, 11, 20)
	w.ob = rows
	w.addAll(other, 21, 30)
	got, copies := story(t, w.read(40))
	if !slices.Equal(got[one], upTo(10)) || !slices.Equal(got[other], upTo(30)) || copies > 0 {
		t.Errorf("published %v, %d copies", got, copies)
	}
	w.marked(30) // of the rows
	w.caughtUp()
	w.eventually(func() (bool, string) { return w.stops() == 0, "a partition is still told as stopped" })
}

// What stands in the WAL alone would be lost on a relay that reads rows.
func TestARelayThatReadsRowsDoesNotPassOverMessages(t *testing.T) {
	t.Parallel()
	w := newWorldIn(t, relay.Message)
	_, stop := w.loudRelay()
	w.add("a", 1)
	w.read(1)
	stop()
	w.add("a", 2)
	w.cfg.Mode = relay.WAL
	log, stop := w.loudRelay()
	w.told(log, 1, "relay stopped", "mode message")
	stop()
	w.cfg.Mode = relay.Message
	w.loudRelay()
	if got, _ := story(t, w.read(2)); !slices.Equal(got["a"], upTo(2)) {
		t.Errorf("published %v", got)
	}
}
