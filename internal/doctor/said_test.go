package doctor

import (
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/pg/pgtest"
)

func TestParkedEventsAreFound(t *testing.T) {
	p := healthy(t, pgtest.New(t))
	p.finding("parked events").is(t, OK, "none")
	p.exec(`INSERT INTO waybill.parked (group_name, topic, partition, "offset", key, event_id, type, tenant, subject, sequence, record_time, header_names, header_values, state, error)
		SELECT 'billing', 'things', 0, n, 'k', gen_random_uuid(), 'T', 't', 'k', n, now(), '{}', '{}', CASE n WHEN 1 THEN 'retrying' ELSE 'waiting' END, CASE n WHEN 1 THEN 'no fee for it' ELSE '' END
		FROM generate_series(1, 3) n`)
	p.finding("parked events").is(t, Warn, "billing: 3 events of 1 key, since", "no fee for it", "waybill dlq ls --parked")
}

// The inbox is a consumer's: where none ever ran, nobody makes its days.
func TestDaysOfAnInboxWithoutConsumersAreNotMissed(t *testing.T) {
	p := healthy(t, pgtest.New(t))
	p.exec(`DROP TABLE waybill.inbox_` + time.Now().UTC().Format("20060102"))
	p.finding("days").is(t, OK, "ahead are there")
	p.exec(`INSERT INTO waybill.watermark (group_name, topic, partition, topic_id, leader_epoch, next_offset) VALUES ('g', 't', 0, gen_random_uuid(), 0, 0)`)
	p.finding("days").is(t, Fail, "inbox_")
}

func TestWhatIsMendedByUpNamesIt(t *testing.T) {
	p := healthy(t, pgtest.New(t))
	p.finding("slot").is(t, Fail, "waybill run relay")
	p.Up = "waybill up --dir /d"
	f := p.finding("slot")
	f.is(t, Fail, "waybill up --dir /d")
	if strings.Contains(f.Mend, "waybill run") {
		t.Error(f.Mend)
	}
}

// A role that may not ask for the server's folder is told what would let it.
func TestTheWALBudgetSaysWhatTheRoleLacks(t *testing.T) {
	p := healthy(t, pgtest.New(t))
	if f := p.finding("WAL budget"); !strings.Contains(f.Found, "GRANT pg_read_all_settings TO ") {
		t.Errorf("%+v", f)
	}
}

func TestWhatCouldNotBeLookedAtIsCounted(t *testing.T) {
	p := healthy(t, pgtest.New(t))
	found := lookAtDatabase(t.Context(), p.withDefaults())
	if n := Unlooked(found); n != 1 { // the broker's topics
		t.Errorf("%d, want 1: of %d", n, len(found))
	}
	away := lookAtDatabase(t.Context(), Subject{DatabaseURL: "postgres://a:b@127.0.0.1:1/x"}.withDefaults())
	if n := Unlooked(away); n != len(databaseChecks())+len(tableChecks())+1 {
		t.Errorf("%d of a database that is away", n)
	}
	if text := away[0].Found; strings.Count(text, "connection refused") != 1 {
		t.Errorf("told more than once: %s", text)
	}
}
