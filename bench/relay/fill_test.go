package relay

import (
	"bytes"
	"encoding/binary"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/bench/topic"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox/message"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// outboxOf is an outbox with no broker, and the contract of its topic.
func outboxOf(t *testing.T, m string) (*Outbox, *event.Contract) {
	t.Helper()
	dsn := pgtest.New(t)
	db, err := pg.Open(t.Context(), dsn, pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := pg.Migrate(t.Context(), db, tables.Migration()); err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec(t.Context(), fillProcedure); err != nil {
		t.Fatal(err)
	}
	c, err := contractOf("topic")
	if err != nil {
		t.Fatal(err)
	}
	return &Outbox{
		mode: modes[m], engines: &engine.Engines{DSN: dsn, DB: db}, contracts: map[string]*event.Contract{"topic": c},
	}, c
}

// The backlog is what it is said to be, and its keys are those of the tally.
func TestBacklogHasItsShape(t *testing.T) {
	o, _ := outboxOf(t, WAL)
	const total = 4*40 + 3
	b, err := o.Fill(t.Context(), "topic", total)
	if err != nil || b.Events != total || len(b.last) != Keys.Writers {
		t.Fatalf("%+v: %v", b, err)
	}
	var rows, singles, tens, size, last int
	err = o.engines.DB.QueryRow(t.Context(), `WITH commits AS (SELECT count(*) AS n FROM waybill.outbox_events GROUP BY xid)
		SELECT sum(n), count(*) FILTER (WHERE n = 1), count(*) FILTER (WHERE n = 10),
		(SELECT max(length(body)) FROM waybill.outbox_events), (SELECT count(*) FROM waybill.outbox_events WHERE id = ANY ($1)) FROM commits`,
		b.last).Scan(&rows, &singles, &tens, &size, &last)
	if err != nil || rows != total || singles != 4*20+3 || tens != 4*2 || size != BodySize || last != Keys.Writers {
		t.Errorf("%d rows, %d commits of one, %d of ten, bodies of %d bytes, %d of the last ones: %v", rows, singles, tens, size, last, err)
	}
	for w := range Keys.Writers {
		for j := range Keys.Share(w, total) {
			key, sequence := Keys.Of(w, j)
			var n int
			if err := o.engines.DB.QueryRow(t.Context(), `SELECT count(*) FROM waybill.outbox_events WHERE subject = $1 AND sequence = $2`,
				key, sequence).Scan(&n); err != nil || n != 1 {
				t.Fatalf("%d events of key %s and sequence %d: %v", n, key, sequence, err)
			}
		}
	}
}

func TestSustainedWritingEndsInTime(t *testing.T) {
	o, _ := outboxOf(t, WAL)
	b, err := o.sustain(t.Context(), "topic", 50*time.Millisecond)
	if err != nil || b.Events == 0 {
		t.Errorf("%d events: %v", b.Events, err)
	}
}

// Messages written by the server and those written here say the same as the
// outbox's own would.
func TestMessagesAreThoseOfTheOutbox(t *testing.T) {
	o, c := outboxOf(t, Message)
	if _, err := o.engines.DB.Exec(t.Context(), `SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, slotOf(o.engines)); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Fill(t.Context(), "topic", 4*11); err != nil {
		t.Fatal(err)
	}
	var batch pgx.Batch
	own := &parcel{Payload: payload(), contract: c, key: "0-11", sequence: 1}
	if err := emit(event.WithTenant(t.Context(), "bench"), &batch, own); err != nil {
		t.Fatal(err)
	}
	if err := o.engines.DB.SendBatch(t.Context(), &batch).Close(); err != nil {
		t.Fatal(err)
	}
	rows, err := o.engines.DB.Query(t.Context(), `SELECT data FROM pg_logical_slot_get_binary_changes($1, NULL, NULL,
		'proto_version', '1', 'publication_names', 'waybill_outbox', 'messages', 'true')`, slotOf(o.engines))
	if err != nil {
		t.Fatal(err)
	}
	all, err := pgx.CollectRows(rows, pgx.RowTo[[]byte])
	if err != nil {
		t.Fatal(err)
	}
	body, err := c.Schema.Encode(own)
	if err != nil {
		t.Fatal(err)
	}
	tally := topic.NewTally(Keys)
	for _, data := range all {
		content, ok := messageOf(t, data)
		if !ok {
			continue
		}
		var col [message.Columns][]byte
		if err := message.Split(content, &col); err != nil {
			t.Fatal(err)
		}
		if string(col[message.Topic]) != "topic" || !bytes.Equal(col[message.Body], body) || string(col[message.Tenant]) != "bench" ||
			int64(binary.BigEndian.Uint64(col[message.Fingerprint])) != c.Fingerprint || string(col[message.Type]) != c.Type || col[message.ID][6]>>4 != 7 {
			t.Fatalf("%q", col)
		}
		if _, _, err := tally.Saw(recordOf(col)); err != nil {
			t.Fatal(err)
		}
	}
	if tally.Seen != 45 || tally.Duplicates != 0 || tally.Reordered != 0 {
		t.Errorf("%+v", tally)
	}
}
