package doctor

import (
	"context"
	"flag"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/daypart"
	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// Tests that run in parallel wait more than they work: there may be more of
// them than cores, unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("6"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// patient is a database that a test makes ill.
type patient struct {
	Subject
	t  *testing.T
	db *pgxpool.Pool
}

// healthy has its tables, the days to come, and a slot.
func healthy(t *testing.T, dsn string) *patient {
	t.Helper()
	p := newPatient(t, dsn)
	p.exec(`SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, p.Relay.Slot)
	return p
}

func newPatient(t *testing.T, dsn string) *patient {
	t.Helper()
	p := &patient{t: t, db: open(t, dsn), Subject: Subject{DatabaseURL: dsn}}
	p.Relay.Slot = relay.SlotName(p.db.Config().ConnConfig.Database)
	if err := pg.Migrate(t.Context(), p.db, incident.Migration(), tables.Migration(), consumer.Migrations()); err != nil {
		t.Fatal(err)
	}
	for _, name := range daily {
		if err := daypart.Ensure(t.Context(), p.db, daypart.Table{Schema: "waybill", Name: name}, time.Now(), time.Now().AddDate(0, 0, fewDays+1)); err != nil {
			t.Fatal(err)
		}
	}
	return p
}

func open(t *testing.T, dsn string) *pgxpool.Pool {
	t.Helper()
	db, err := pg.Open(t.Context(), dsn, pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	return db
}

// server is one of the test's own, with its superuser. It is not killed, so
// what it writes need not reach the disk.
func server(t *testing.T, cfg local.Config) (s *local.Server, admin *pgxpool.Pool) {
	t.Helper()
	settings := map[string]string{"fsync": "off"}
	maps.Copy(settings, cfg.Settings)
	cfg.Settings = settings
	s = pgtest.Server(t, cfg)
	return s, open(t, s.AdminDSN())
}

func exec(t *testing.T, db *pgxpool.Pool, sql string, args ...any) {
	t.Helper()
	if _, err := db.Exec(t.Context(), sql, args...); err != nil {
		t.Fatal(err)
	}
}

func (p *patient) exec(sql string, args ...any) {
	p.t.Helper()
	exec(p.t, p.db, sql, args...)
}

// finding is what the doctor says of one thing.
func (p *patient) finding(name string) Finding {
	p.t.Helper()
	return find(p.t, lookAtDatabase(p.t.Context(), p.withDefaults()), name)
}

func find(t *testing.T, found []Finding, name string) Finding {
	t.Helper()
	for _, f := range found {
		if f.Check == name {
			return f
		}
	}
	t.Fatalf("no check %s in %+v", name, found)
	return Finding{}
}

// is checks a finding, which has to say all of says somewhere. What is not
// well has to say why that matters, and the mend.
func (f Finding) is(t *testing.T, v Verdict, says ...string) {
	t.Helper()
	if f.Verdict != v {
		t.Errorf("%s is %s, want %s: %+v", f.Check, f.Verdict, v, f)
	}
	if v != OK && (f.Why == "" || f.Mend == "") {
		t.Errorf("%s says not why, or no mend: %+v", f.Check, f)
	}
	for _, say := range says {
		if !strings.Contains(f.Found+"\n"+f.Why+"\n"+f.Mend, say) {
			t.Errorf("%s does not say %q: %+v", f.Check, say, f)
		}
	}
}

// eventually waits for a state.
func eventually(t *testing.T, claim string, holds func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatalf("not so: %s", claim)
		case <-tick.C:
		}
	}
}
