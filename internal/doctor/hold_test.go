package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestTransactionsLeftOpen(t *testing.T) {
	t.Parallel()
	s, admin := server(t, local.Config{Settings: map[string]string{"max_prepared_transactions": "5"}})
	p := newPatient(t, s.DSN()) // without a slot, which holds rows as well
	p.LongTransaction = 300 * time.Millisecond
	p.oldRows = 50
	p.finding("transactions").is(t, OK)
	p.finding("prepared").is(t, OK)
	p.finding("held rows").is(t, OK)

	conn, err := pgx.Connect(t.Context(), s.DSN()+"&application_name=forgetful")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(t.Context()) })
	if _, err := conn.Exec(t.Context(), `BEGIN ISOLATION LEVEL REPEATABLE READ; CREATE TABLE x (n int)`); err != nil {
		t.Fatal(err)
	}
	eventually(t, "it is found", func() bool { return p.finding("transactions").Verdict == Warn })
	f := p.finding("transactions")
	f.is(t, Warn, "forgetful", "idle in transaction", "pg_terminate_backend")
	for range 60 {
		p.exec(`SELECT pg_current_xact_id()`)
	}
	p.finding("held rows").is(t, Warn, "holds 6")
	_, end, _ := strings.Cut(f.Mend, "or: ")
	end, _, _ = strings.Cut(end, ";")
	p.exec(end)
	eventually(t, "the mend helps", func() bool {
		return p.finding("transactions").Verdict == OK && p.finding("held rows").Verdict == OK
	})

	p.exec(`BEGIN; INSERT INTO waybill.outbox_skips VALUES (gen_random_uuid(), '', ''); PREPARE TRANSACTION 'it''s left'`)
	eventually(t, "it is found", func() bool { return p.finding("prepared").Verdict == Warn })
	f = p.finding("prepared")
	f.is(t, Warn, "it's left")
	for range 60 {
		p.exec(`SELECT pg_current_xact_id()`)
	}
	p.finding("held rows").is(t, Warn, "prepared transaction it's left")
	_, end, _ = strings.Cut(f.Mend, "database: ")
	end, _, _ = strings.Cut(end, " (")
	p.exec(end)
	p.finding("prepared").is(t, OK)

	// What a role may not see is no reason to say that nothing is there.
	other, err := pgx.Connect(t.Context(), s.AdminDSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close(t.Context()) })
	p.finding("transactions").is(t, OK, "cannot be seen", "GRANT pg_monitor")
	exec(t, admin, `GRANT pg_monitor TO waybill`)
	if f := p.finding("transactions"); strings.Contains(f.Found, "cannot be seen") {
		t.Errorf("%+v", f)
	}
}

func TestSlotsThatHoldWAL(t *testing.T) {
	t.Parallel()
	s, admin := server(t, local.Config{Settings: map[string]string{"max_slot_wal_keep_size": "200MB", "max_wal_size": "64MB", "wal_keep_size": "0"}})
	p := healthy(t, s.DSN())
	p.exec(`SELECT pg_create_logical_replication_slot('left_behind', 'pgoutput')`)
	p.exec(`CREATE TABLE junk (t text)`)
	write := func() { p.exec(`INSERT INTO junk SELECT repeat('x', 1000) FROM generate_series(1, 40000)`) }
	p.finding("other slots").is(t, OK)
	write()
	f := p.finding("other slots")
	f.is(t, Warn, "left_behind", "pg_drop_replication_slot('left_behind')")
	_, drop, _ := strings.Cut(f.Mend, "for good: ")
	p.exec(drop)
	p.finding("other slots").is(t, OK)
	read(t, p)
	eventually(t, "much is held and said", func() bool { // a reader that confirms nothing
		write()
		f := p.finding("slot")
		return f.Verdict != OK && strings.Contains(f.Mend, "max_slot_wal_keep_size")
	})
	eventually(t, "the server gives it up", func() bool {
		write()
		exec(t, admin, `CHECKPOINT`)
		return strings.Contains(p.finding("slot").Found, "status lost")
	})
	p.finding("slot").is(t, Fail, "threw away", "nothing is lost")
}

func TestReplicasWithoutTheSlot(t *testing.T) {
	t.Parallel()
	s, admin := server(t, local.Config{})
	p := healthy(t, s.DSN())
	p.finding("failover").is(t, OK)
	slots := lookAt(t, p).major() >= 17
	standby := pgtest.NewStandby(t, s, pgtest.StandbyConfig{SyncSlots: slots})
	there := &patient{t: t, Subject: Subject{DatabaseURL: standby.DSN()}}
	there.finding("database").is(t, Fail, "a replica", "primary")
	if !slots { // WAYBILL_TEST_POSTGRES=17 goes on
		p.finding("failover").is(t, Warn, "upgrade to Postgres 17", "makes a new one")
		p.Relay.Mode = relay.Message
		p.finding("failover").is(t, Warn, "are lost")
		return
	}
	f := p.finding("failover")
	f.is(t, Warn, "not one for failover")
	_, alter, _ := strings.Cut(f.Mend, `-c "`)
	alter, _, _ = strings.Cut(alter, `"`)
	dsn, err := pg.ReplicationDSN(s.DSN())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := pgconn.Connect(t.Context(), dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }()
	if _, err := conn.Exec(t.Context(), alter).ReadAll(); err != nil {
		t.Fatalf("%s: %v", alter, err)
	}
	f = p.finding("failover")
	f.is(t, Warn, "synchronized_standby_slots does not name")
	for sql := range strings.SplitSeq(f.Mend, "; ") {
		exec(t, admin, sql)
	}
	eventually(t, "the mend helps", func() bool { return p.finding("failover").Verdict == OK })
}

// lookAt is the subject with what connecting told of it.
func lookAt(t *testing.T, p *patient) *Subject {
	t.Helper()
	s := p.withDefaults()
	if _, err := connect(t.Context(), &s); err != nil {
		t.Fatal(err)
	}
	s.db.Close()
	return &s
}
