package relay_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// addAll adds events of an account in one transaction.
func (w *world) addAll(account string, from, to int) {
	w.t.Helper()
	must(w.t, pgx.BeginFunc(w.t.Context(), w.db, func(tx pgx.Tx) error {
		var all []event.Data
		for i := from; i <= to; i++ {
			all = append(all, noted{contract: w.contract, Account: account, N: int64(i)})
		}
		return w.ob.Add(tenant(w.t.Context()), tx, all...)
	}))
}

// addHuge adds an event that is larger than the topic takes.
func (w *world) addHuge(account string, n int) {
	w.t.Helper()
	must(w.t, pgx.BeginFunc(w.t.Context(), w.db, func(tx pgx.Tx) error {
		return w.ob.Add(tenant(w.t.Context()), tx, noted{contract: w.contract, Account: account, N: int64(n), Note: strings.Repeat("x", 200_000)})
	}))
}

// topicLimit bounds what a record of the topic may have. A broker applies it some
// time after it has answered.
func (w *world) topicLimit(bytes string) {
	w.t.Helper()
	admin := kadm.NewClient(w.engine.Client(w.t))
	resp, err := admin.AlterTopicConfigs(w.t.Context(), []kadm.AlterConfig{
		{Op: kadm.SetConfig, Name: "max.message.bytes", Value: &bytes},
	}, w.contract.Topic)
	must(w.t, err)
	must(w.t, resp[0].Err)
	w.eventually(func() (bool, string) {
		all, err := admin.DescribeTopicConfigs(w.t.Context(), w.contract.Topic)
		must(w.t, err)
		for _, c := range all[0].Configs {
			if c.Key == "max.message.bytes" {
				return c.MaybeValue() == bytes, "the limit is " + c.MaybeValue()
			}
		}
		return false, "the topic has no limit"
	})
	if w.engine.Capabilities.Compaction { // Kafka's logs take a setting over just after its metadata
		time.Sleep(200 * time.Millisecond)
	}
}

func (w *world) stops() (n int) {
	w.t.Helper()
	must(w.t, w.db.QueryRow(w.t.Context(), `SELECT count(*) FROM waybill.outbox_stopped`).Scan(&n))
	return n
}

func (w *world) incidents(kind string) (n int) {
	w.t.Helper()
	must(w.t, w.db.QueryRow(w.t.Context(), `SELECT count(*) FROM waybill.incidents WHERE kind = $1`, kind).Scan(&n))
	return n
}

// keys are two accounts of different partitions.
func (w *world) keys() (one, other string) {
	p := kgo.StickyKeyPartitioner(nil).ForTopic(w.contract.Topic)
	at := func(key string) int { return p.Partition(&kgo.Record{Key: []byte(key)}, 3) }
	for i := 1; ; i++ {
		if other = fmt.Sprint("k", i); at(other) != at("k0") {
			return "k0", other
		}
	}
}

func upTo(n int) (out []int64) {
	for i := range n {
		out = append(out, int64(i+1))
	}
	return out
}

func TestARefusedEventStopsItsPartitionAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.keys()
	w.topicLimit("100000")
	log, stop := w.loudRelay()
	w.addAll(one, 1, 20)
	w.addHuge(one, 21)
	w.addAll(one, 22, 40)
	w.addAll(other, 1, 30)
	w.told(log, 1, "an event is refused", "MESSAGE_TOO_LARGE")
	w.addAll(other, 31, 60)
	w.addAll(one, 41, 50)
	w.marked(20 + 60)
	got, copies := story(t, w.read(80))
	if !slices.Equal(got[one], upTo(20)) || !slices.Equal(got[other], upTo(60)) || copies > 0 {
		t.Errorf("published %v, %d copies", got, copies)
	}
	if w.stops() != 1 || w.incidents("partition_stopped") != 1 {
		t.Errorf("%d stops, %d incidents", w.stops(), w.incidents("partition_stopped"))
	}
	w.told(log, 2, "refused again") // it is tried, and makes no copies

	stop() // another relay takes over what is stopped
	log, _ = w.loudRelay()
	w.addAll(one, 51, 60)
	w.addAll(other, 61, 70)
	w.marked(20 + 70)
	w.topicLimit("1000000")
	w.told(log, 1, "a stopped partition goes on")
	w.addAll(one, 61, 70)
	w.marked(70 + 70)
	got, copies = story(t, w.read(140))
	if !slices.Equal(got[one], upTo(70)) || !slices.Equal(got[other], upTo(70)) {
		t.Errorf("published %v", got)
	}
	if copies > 10 {
		t.Errorf("%d copies", copies)
	}
	if w.stops() != 0 {
		t.Errorf("%d stops", w.stops())
	}
}

func TestAnEventThatIsGivenUpIsSkipped(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.topicLimit("100000")
	log, _ := w.loudRelay()
	w.addAll("a", 1, 3)
	w.addHuge("a", 4)
	w.addHuge("a", 5)
	w.addAll("a", 6, 9)
	for n := 4; n <= 5; n++ {
		w.told(log, n-3, "an event is refused")
		w.exec(`INSERT INTO waybill.outbox_skips (event_id, reason, asked_by) SELECT id, 'too large', 'test' FROM waybill.outbox_events WHERE sequence = $1`, n)
		w.told(log, n-3, "given up")
	}
	w.told(log, 1, "a stopped partition goes on")
	w.marked(9)
	got, _ := story(t, w.read(7))
	if !slices.Equal(got["a"], []int64{1, 2, 3, 6, 7, 8, 9}) {
		t.Errorf("published %v", got)
	}
	var gone int
	must(t, w.db.QueryRow(t.Context(), `SELECT count(*) FROM waybill.outbox_published WHERE log_offset = -1 AND log_partition = -1`).Scan(&gone))
	if gone != 2 || w.incidents("event_skipped") != 2 {
		t.Errorf("%d marked as given up, %d incidents", gone, w.incidents("event_skipped"))
	}
}

// Of an event no record can be made as long as its schema is unknown.
func TestAnEventOfAnUnknownSchemaStopsItsPartition(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.keys()
	log, _ := w.loudRelay()
	w.addAll(one, 1, 20)
	w.marked(20)
	w.exec(`INSERT INTO waybill.outbox_events
		SELECT gen_random_uuid(), topic, subject, source, type, time, tenant, 21, correlation_id, causation_id, trace_parent, 12345, body
		FROM waybill.outbox_events LIMIT 1`)
	w.told(log, 1, "an event is refused", "fingerprint 12345")
	w.addAll(one, 22, 30)
	w.addAll(other, 1, 10)
	w.marked(30)
	got, _ := story(t, w.read(30))
	if !slices.Equal(got[one], upTo(20)) || !slices.Equal(got[other], upTo(10)) {
		t.Errorf("published %v", got)
	}
	w.exec(`INSERT INTO waybill.outbox_contracts SELECT 12345, subject, schema_text FROM waybill.outbox_contracts`)
	w.marked(40)
	if got, _ := story(t, w.read(40)); !slices.Equal(got[one], upTo(30)) {
		t.Errorf("published %v", got)
	}
}

// More is kept back than one pass takes, and the stream goes on meanwhile.
func TestMuchKeptBackComesInOrder(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, other := w.keys()
	w.topicLimit("100000")
	log, _ := w.loudRelay()
	w.addHuge(one, 1)
	w.told(log, 1, "an event is refused")
	const n = 25_000
	for from := 2; from < n; from += 1000 {
		w.addAll(one, from, from+999)
	}
	w.addAll(other, 1, 10)
	w.marked(10)
	w.topicLimit("1000000")
	last := n/1000*1000 + 1
	for i := range 30 {
		w.addAll(one, last+i+1, last+i+1)
	}
	w.marked(10 + last + 30)
	got, copies := story(t, w.read(10+last+30))
	if !slices.Equal(got[one], upTo(last+30)) {
		t.Errorf("%d events, in order %v", len(got[one]), slices.IsSorted(got[one]))
	}
	if copies > 100 {
		t.Errorf("%d copies", copies)
	}
}

// misdirect adds an event of another topic, of key m, made of one of key a.
func (w *world) misdirect(topic string, n int) {
	w.t.Helper()
	w.exec(`INSERT INTO waybill.outbox_events
		SELECT gen_random_uuid(), $1, 'm', source, type, time, tenant, $2, correlation_id, causation_id, trace_parent, schema_fingerprint, body
		FROM waybill.outbox_events WHERE subject = 'a' LIMIT 1`, topic, n)
}

// A topic that is not there keeps its own events back and no others.
func TestAMissingTopicKeepsOnlyItsEventsBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	log, _ := w.loudRelay()
	w.add("a", 1)
	w.marked(1)
	missing := w.contract.Topic + ".later"
	w.misdirect(missing, 1)
	w.misdirect(missing, 2)
	w.told(log, 1, "an event is refused", "UNKNOWN_TOPIC")
	w.add("a", 2)
	w.marked(2)
	w.misdirect(missing, 3)
	_, err := kadm.NewClient(w.engine.Client(t)).CreateTopic(t.Context(), 2, 1, nil, missing)
	must(t, err)
	w.marked(5)
	w.misdirect(missing, 4)
	w.marked(6)
	if w.stops() != 0 {
		t.Errorf("%d stops", w.stops())
	}
	beside := *w
	contract := *w.contract
	contract.Topic = missing
	beside.contract = &contract
	if got, _ := story(t, beside.read(4)); !slices.Equal(got["m"], upTo(4)) {
		t.Errorf("published %v", got)
	}
}

// Giving up the events of a topic that will never be ends the wait for it.
func TestEventsOfAMissingTopicCanBeGivenUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	missing := w.contract.Topic + ".typo"
	log, _ := w.loudRelay()
	w.addAll("a", 1, 2)
	w.marked(2)
	giveUp := func(n int) {
		w.exec(`INSERT INTO waybill.outbox_skips (event_id, reason, asked_by) SELECT id, 'a typing error', 'ana' FROM waybill.outbox_events WHERE topic = $1 AND sequence = $2`, missing, n)
	}
	w.misdirect(missing, 1)
	w.misdirect(missing, 2)
	for n := 1; n <= 2; n++ {
		w.told(log, n, "an event is refused")
		giveUp(n)
		w.told(log, n, "given up")
	}
	w.told(log, 1, "a stopped partition goes on")
	if w.stops() != 0 {
		t.Errorf("%d stops", w.stops())
	}
	var text string
	must(t, w.db.QueryRow(t.Context(), `SELECT text FROM waybill.incidents WHERE kind = 'event_skipped' LIMIT 1`).Scan(&text))
	if !strings.Contains(text, "ana") || !strings.Contains(text, "a typing error") {
		t.Errorf("the incident says neither who nor why: %s", text)
	}
	w.misdirect(missing, 3) // the topic is looked for again
	w.told(log, 3, "an event is refused")
	w.addAll("a", 3, 4)
	w.marked(6)
}
