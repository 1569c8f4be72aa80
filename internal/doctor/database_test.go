package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestAHealthyDatabaseIsFoundSo(t *testing.T) {
	t.Parallel()
	p := healthy(t, pgtest.New(t))
	read(t, p)
	for _, f := range lookAtDatabase(t.Context(), p.withDefaults()) {
		switch f.Check {
		// What other tests do on the same server shows here.
		case "other slots", "transactions", "held rows", "failover":
		default:
			f.is(t, OK)
		}
	}
}

// read reads the slot as a relay does, until the test ends.
func read(t *testing.T, p *patient) {
	t.Helper()
	dsn, err := pg.ReplicationDSN(p.DatabaseURL)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	conn.Frontend().SendQuery(&pgproto3.Query{String: `START_REPLICATION SLOT "` + p.Relay.Slot + `" LOGICAL 0/0 (proto_version '1', publication_names 'waybill_outbox', messages 'true')`})
	if err := conn.Frontend().Flush(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the slot is read", func() bool {
		var active bool
		return p.db.QueryRow(t.Context(), `SELECT active FROM pg_replication_slots WHERE slot_name = $1`, p.Relay.Slot).Scan(&active) == nil && active
	})
}

func TestADatabaseThatCannotBeReached(t *testing.T) {
	t.Parallel()
	found := lookAtDatabase(t.Context(), Subject{DatabaseURL: "postgres://me:hush@127.0.0.1:1/x"}.withDefaults())
	if len(found) != 1 || strings.Contains(found[0].Found, "hush") {
		t.Errorf("%+v", found)
	}
	found[0].is(t, Fail, "127.0.0.1", "psql")
}

func TestADatabaseWithoutTables(t *testing.T) {
	t.Parallel()
	p := &patient{t: t, Subject: Subject{DatabaseURL: pgtest.New(t)}}
	p.finding("tables").is(t, Fail, "outbox_events", "waybill up")
	p.finding("slot").is(t, Warn, "missing", "waybill run relay")
	p.Relay.Mode = relay.Message
	p.finding("slot").is(t, Fail, "would be lost")
}

func TestPublicationsThatLeaveEventsOut(t *testing.T) {
	t.Parallel()
	p := healthy(t, pgtest.New(t))
	for _, c := range []struct{ ill, say string }{
		{`ALTER PUBLICATION waybill_outbox DROP TABLE waybill.outbox_events`, `ADD TABLE`},
		{`ALTER PUBLICATION waybill_outbox SET TABLE waybill.outbox_events WHERE (topic <> 'secret')`, `rows or columns out`},
		{`ALTER PUBLICATION waybill_outbox SET TABLE waybill.outbox_events (id, topic)`, `rows or columns out`},
		{`ALTER PUBLICATION waybill_outbox SET (publish_via_partition_root = false)`, `names partitions`},
		{`ALTER PUBLICATION waybill_outbox SET (publish = 'update')`, `leaves inserts out`},
		{`DROP PUBLICATION waybill_outbox`, `does not exist`},
	} {
		p.exec(c.ill)
		f := p.finding("publication")
		f.is(t, Fail, c.say)
		mend, _, _ := strings.Cut(f.Mend, "; the relay")
		p.exec(mend)
		p.finding("publication").is(t, OK)
	}
	p.exec(`DROP PUBLICATION waybill_outbox`)
	p.Relay.Mode = relay.Poll
	p.finding("publication").is(t, OK)
}

func TestSynchronousCommitOffIsFoundWhereverItIsSet(t *testing.T) {
	t.Parallel()
	p := healthy(t, pgtest.New(t))
	p.finding("synchronous_commit").is(t, OK)
	db := p.db.Config().ConnConfig.Database
	p.exec(`ALTER DATABASE ` + db + ` SET synchronous_commit = off`)
	f := p.finding("synchronous_commit")
	f.is(t, Warn, "ALTER DATABASE", "137 ms")
	p.exec(f.Mend)
	p.finding("synchronous_commit").is(t, OK)
	p.exec(`ALTER ROLE CURRENT_USER IN DATABASE ` + db + ` SET synchronous_commit = off`)
	f = p.finding("synchronous_commit")
	f.is(t, Warn, "ALTER ROLE", "IN DATABASE")
	p.exec(f.Mend)
	p.finding("synchronous_commit").is(t, OK)
	p.DatabaseURL += "&synchronous_commit=off"
	p.finding("synchronous_commit").is(t, Warn, "connection string")
}

func TestRowsWithoutADay(t *testing.T) {
	t.Parallel()
	p := healthy(t, pgtest.New(t))
	p.finding("default partitions").is(t, OK)
	p.exec(`INSERT INTO waybill.outbox_events VALUES ('ffffffff-0000-7000-8000-000000000000', 'things', 'k', '/test', 'Thing', now(), 't1', 0, '', '', '', 1, '')`)
	p.finding("default partitions").is(t, Warn, "outbox_events_default")
	day := func(ahead int) string {
		return "waybill.outbox_published_" + time.Now().UTC().AddDate(0, 0, ahead).Format("20060102")
	}
	p.exec(`ALTER TABLE waybill.outbox_published DETACH PARTITION ` + day(2))
	p.finding("days").is(t, Warn, day(2)[len("waybill."):])
	p.exec(`DROP TABLE ` + day(0))
	p.finding("days").is(t, Fail, day(0)[len("waybill."):])
}

func TestABacklogNearItsBudget(t *testing.T) {
	t.Parallel()
	p := healthy(t, pgtest.New(t))
	p.MaxBacklog = 10
	add := func(from, to int) {
		p.exec(`INSERT INTO waybill.outbox_events
			SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '70008000' || lpad(to_hex(n), 12, '0'))::uuid,
				'things', 'k', '/test', 'Thing', now() - interval '1 hour', 't1', 0, '', '', '', 1, '' FROM generate_series($1::int, $2) n`, from, to)
	}
	add(1, 8)
	p.finding("backlog").is(t, OK, "8 events", "1h0m")
	add(9, 10)
	p.finding("backlog").is(t, Warn, "10 events")
	add(11, 11)
	p.finding("backlog").is(t, Fail, "waybill outbox status")
}

func TestStopsAndIncidents(t *testing.T) {
	t.Parallel()
	p := healthy(t, pgtest.New(t))
	const event = "0190f5e0-0000-7000-8000-00000000abcd"
	p.exec(`INSERT INTO waybill.outbox_stopped (slot, topic, partition, event_id, error) VALUES ($1, 'things', 3, $2, 'too large')`, p.Relay.Slot, event)
	p.finding("stopped partitions").is(t, Fail, "things partition 3", "too large", "waybill outbox skip "+event)
	if err := incident.Record(t.Context(), p.db, incident.Incident{Part: "relay", Kind: "slot_lost", Subject: "s"}); err != nil {
		t.Fatal(err)
	}
	p.finding("incidents").is(t, Warn, "slot_lost", "waybill incidents")
}

func TestClocksApart(t *testing.T) {
	t.Parallel()
	p := healthy(t, pgtest.New(t))
	for skew, want := range map[time.Duration]Verdict{0: OK, 30 * time.Second: Warn, -30 * time.Second: Warn, time.Hour: Fail, -time.Hour: Fail} {
		p.Now = func() time.Time { return time.Now().Add(-skew) }
		says := "ahead"
		if skew < 0 {
			says = "behind"
		}
		if skew != 0 {
			p.finding("clock").is(t, want, says, "NTP")
		} else {
			p.finding("clock").is(t, want)
		}
	}
}

func TestTablesWithoutReplicaIdentity(t *testing.T) {
	t.Parallel()
	p := healthy(t, pgtest.New(t))
	p.exec(`CREATE TABLE good (id int PRIMARY KEY); CREATE TABLE whole (id int); ALTER TABLE whole REPLICA IDENTITY FULL`)
	p.exec(`CREATE PUBLICATION waybill_cdc FOR TABLE good, whole`)
	p.finding("cdc tables").is(t, OK, "2 tables")
	p.exec(`CREATE TABLE bare (id int); CREATE TABLE parts (id int) PARTITION BY LIST (id); CREATE TABLE part_1 PARTITION OF parts FOR VALUES IN (1)`)
	p.exec(`CREATE PUBLICATION waybill_cdc_more FOR TABLE bare, parts WITH (publish_via_partition_root = true)`)
	f := p.finding("cdc tables")
	f.is(t, Fail, "bare", "part_1", "REPLICA IDENTITY FULL")
	if strings.Contains(f.Found, "good") || strings.Contains(f.Found, "whole") {
		t.Errorf("%+v", f)
	}
	p.exec(`ALTER TABLE bare REPLICA IDENTITY FULL; ALTER TABLE part_1 REPLICA IDENTITY FULL; ALTER TABLE good REPLICA IDENTITY NOTHING`)
	p.finding("cdc tables").is(t, Fail, "good")
}

func TestASlotOfAnother(t *testing.T) {
	t.Parallel()
	p := newPatient(t, pgtest.New(t))
	p.exec(`SELECT pg_create_logical_replication_slot($1, 'test_decoding')`, p.Relay.Slot)
	p.finding("slot").is(t, Fail, "test_decoding")
	p.exec(`SELECT pg_drop_replication_slot($1)`, p.Relay.Slot)
	p.exec(`SELECT pg_create_physical_replication_slot($1)`, p.Relay.Slot)
	p.finding("slot").is(t, Fail, "physical")
	p.exec(`SELECT pg_drop_replication_slot($1)`, p.Relay.Slot)
}

func TestASlotThatNobodyReads(t *testing.T) {
	t.Parallel()
	p := healthy(t, pgtest.New(t))
	p.finding("slot").is(t, Fail, "inactive", "waybill run relay")
	p.Relay.Mode = relay.Poll
	f := p.finding("slot")
	f.is(t, Warn, "pg_drop_replication_slot")
	_, drop, _ := strings.Cut(f.Mend, ": ")
	p.exec(drop)
	p.finding("slot").is(t, OK)
}

func TestAServerThatSaysTooLittleInItsWAL(t *testing.T) {
	t.Parallel()
	s, admin := server(t, local.Config{Settings: map[string]string{
		"wal_level": "replica", "max_replication_slots": "1", "max_wal_senders": "3", "max_slot_wal_keep_size": "-1",
	}})
	p := newPatient(t, s.DSN())
	p.DataDir = s.DataDir()
	p.finding("wal_level").is(t, Fail, "ALTER SYSTEM SET wal_level")
	p.finding("WAL budget").is(t, Warn, "not set", "free on its disk", "max_slot_wal_keep_size = '")
	p.finding("room").is(t, OK, "0 of 1")
	exec(t, admin, `SELECT pg_create_physical_replication_slot('greedy')`)
	p.finding("room").is(t, Fail, "1 of 1", "max_replication_slots")
	p.finding("failover").is(t, Warn, "greedy")
	p.Relay.Mode = relay.Poll
	p.finding("wal_level").is(t, OK)
	p.finding("room").is(t, OK)
	p.finding("failover").is(t, OK)
	p.Relay.Mode = ""
	exec(t, admin, `ALTER ROLE waybill NOREPLICATION`)
	f := p.finding("replication")
	f.is(t, Fail, "ALTER ROLE")
	mend, _, _ := strings.Cut(f.Mend, " (")
	exec(t, admin, mend)
	p.finding("replication").is(t, OK)
}

func TestADiskThatFillsBeforeTheBudget(t *testing.T) {
	t.Parallel()
	s, admin := server(t, local.Config{Settings: map[string]string{"max_slot_wal_keep_size": "1000TB"}})
	p := healthy(t, s.DSN())
	p.finding("WAL budget").is(t, OK, "unknown") // an ordinary role is not told the folder
	p.DataDir = t.TempDir()
	p.finding("WAL budget").is(t, OK, "unknown")
	p.DataDir = s.DataDir()
	f := p.finding("WAL budget")
	f.is(t, Warn, "1000.0 TiB", "GiB free")
	_, raise, _ := strings.Cut(f.Mend, ", or ")
	for sql := range strings.SplitSeq(raise, "; ") {
		exec(t, admin, sql)
	}
	eventually(t, "the mend helps", func() bool { return p.finding("WAL budget").Verdict == OK })
	exec(t, admin, `GRANT pg_read_all_settings TO waybill`)
	p.DataDir = ""
	p.finding("WAL budget").is(t, OK, "free on its disk")
}

func TestWhoMayWriteMessages(t *testing.T) {
	t.Parallel()
	s, admin := server(t, local.Config{})
	p := healthy(t, s.DSN())
	p.Relay.Mode = relay.Message
	every := func(verb, to string) {
		t.Helper()
		exec(t, admin, `DO $$ DECLARE f regprocedure; BEGIN FOR f IN SELECT oid FROM pg_proc WHERE proname = 'pg_logical_emit_message' LOOP
			EXECUTE format('`+verb+` EXECUTE ON FUNCTION %s `+to+`', f); END LOOP; END $$`)
	}
	for _, c := range []struct {
		verb, to string
		want     Verdict
		say      string
	}{{"GRANT", "TO PUBLIC", Warn, "forge"}, {"REVOKE", "FROM PUBLIC, waybill", Fail, "GRANT EXECUTE"}} {
		every(c.verb, c.to)
		f := p.finding("logical messages")
		f.is(t, c.want, c.say)
		mend, _, _ := strings.Cut(f.Mend, "as a superuser")
		for sql := range strings.SplitSeq(mend, "; ") {
			exec(t, admin, sql)
		}
		p.finding("logical messages").is(t, OK)
	}
}
