package outbox_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// thing is the event of these tests.
type thing struct {
	contract *event.Contract
	ID       string `avro:"id"`
	Kind     string `avro:"kind"`
	Bulk     string `avro:"bulk"`
}

func (t thing) EventContract() *event.Contract { return t.contract }
func (t thing) EventKey() string               { return t.ID }
func (thing) EventSequence() int64             { return 1 }

const thingSchema = `{"type":"record","name":"Thing","namespace":"test","fields":[
	{"name":"id","type":"string"},
	{"name":"kind","type":{"type":"enum","name":"Kind","symbols":["UNKNOWN","ROUND"],"default":"UNKNOWN"}},
	{"name":"bulk","type":"string"}]}`

var (
	known   = event.MustContract("things", "/test", thingSchema)
	unknown = event.MustContract("others", "/test", strings.Replace(thingSchema, `"Thing"`, `"Other"`, 1))
)

func database(t *testing.T) *pgxpool.Pool {
	t.Helper()
	db, err := pg.Open(t.Context(), pgtest.Migrated(t, tables.Migration()), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(db.Close)
	if err := tables.EnsureDays(t.Context(), db, time.Now()); err != nil {
		t.Fatal(err)
	}
	return db
}

func rows(t *testing.T, db *pgxpool.Pool, table string) (n int) {
	t.Helper()
	if err := db.QueryRow(t.Context(), `SELECT count(*) FROM `+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRefusedEventFailsTheCallersTransaction(t *testing.T) {
	db := database(t)
	ob := outbox.New([]*event.Contract{known}, outbox.Config{MaxBytes: 1000})
	if _, err := db.Exec(t.Context(), `CREATE TABLE fact (n int)`); err != nil {
		t.Fatal(err)
	}
	good := thing{contract: known, ID: "a", Kind: "ROUND"}
	tenant := event.WithTenant(t.Context(), "t1")
	large := good
	large.Bulk = strings.Repeat("x", 2000)
	for name, c := range map[string]struct {
		ctx  context.Context
		data event.Data
		want error
		says string
	}{
		"unknown type":   {tenant, thing{contract: unknown, ID: "a", Kind: "ROUND"}, outbox.ErrUnknownType, "outbox.New"},
		"missing tenant": {t.Context(), good, outbox.ErrMissingTenant, "event.WithTenant"},
		"missing key":    {tenant, thing{contract: known, Kind: "ROUND"}, outbox.ErrMissingKey, "key"},
		"invalid value":  {tenant, thing{contract: known, ID: "a", Kind: "SQUARE"}, outbox.ErrInvalid, "SQUARE"},
		"endless key":    {tenant, thing{contract: known, ID: strings.Repeat("k", 5000), Kind: "ROUND"}, outbox.ErrTooLong, "4096"},
		"oversize":       {tenant, large, nil, "limit is 1000"},
	} {
		err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error {
			if _, err := tx.Exec(t.Context(), `INSERT INTO fact VALUES (1)`); err != nil {
				return err
			}
			return ob.Add(c.ctx, tx, good, c.data)
		})
		var refusal *outbox.Refusal
		if !errors.As(err, &refusal) || (c.want != nil && !errors.Is(err, c.want)) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		var large *outbox.TooLargeError
		if c.want == nil && (!errors.As(err, &large) || large.Limit != 1000) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := rows(t, db, "fact"); n != 0 {
		t.Errorf("%d facts were committed without their event", n)
	}
	if n := rows(t, db, "waybill.outbox_events"); n != 0 {
		t.Errorf("%d events were written", n)
	}
}

func TestAddedEventsShareTheTransactionsFate(t *testing.T) {
	db := database(t)
	ob := outbox.New([]*event.Contract{known}, outbox.Config{})
	ctx := event.WithTenant(t.Context(), "t1")
	undo := errors.New("undo")
	for _, fate := range []error{undo, nil} {
		err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			if err := ob.Add(ctx, tx, thing{contract: known, ID: "a", Kind: "ROUND"}, thing{contract: known, ID: "b", Kind: "ROUND"}); err != nil {
				return err
			}
			return fate
		})
		if !errors.Is(err, fate) {
			t.Fatal(err)
		}
	}
	if n := rows(t, db, "waybill.outbox_events"); n != 2 {
		t.Errorf("%d events, want the 2 of the committed transaction", n)
	}
}

func TestAddOfNothingIsNothing(t *testing.T) {
	db := database(t)
	ob := outbox.New(nil, outbox.Config{})
	if err := pgx.BeginFunc(t.Context(), db, func(tx pgx.Tx) error { return ob.Add(t.Context(), tx) }); err != nil {
		t.Error(err)
	}
}

func TestEventsLieInThePartitionOfTheirDay(t *testing.T) {
	db := database(t)
	ob := outbox.New([]*event.Contract{known}, outbox.Config{})
	ctx := event.WithTenant(t.Context(), "t1")
	if err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
		return ob.Add(ctx, tx, thing{contract: known, ID: "a", Kind: "ROUND"})
	}); err != nil {
		t.Fatal(err)
	}
	if n := rows(t, db, "waybill.outbox_events_default"); n != 0 {
		t.Errorf("%d events in the default partition", n)
	}
}

func TestDeclareTwiceKeepsOne(t *testing.T) {
	db := database(t)
	ob := outbox.New([]*event.Contract{known, unknown}, outbox.Config{})
	for range 2 {
		if err := ob.Declare(t.Context(), db); err != nil {
			t.Fatal(err)
		}
	}
	if n := rows(t, db, "waybill.outbox_contracts"); n != 2 {
		t.Errorf("%d contracts, want 2", n)
	}
}
