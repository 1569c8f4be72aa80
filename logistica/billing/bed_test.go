package billing_test

import (
	"context"
	"errors"
	"flag"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/billing"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// The property takes dozens of transactions for each check: fewer of them,
// unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("40"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// bed is a ledger on a database of its own, with the real outbox.
type bed struct {
	*billing.Ledger
	pool *pgxpool.Pool
}

func newBed(t testing.TB, cfg billing.Config) bed {
	t.Helper()
	pool, err := pg.Open(t.Context(), pgtest.Migrated(t, tables.Migration(), billing.Migration()), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return bedOn(pool, cfg)
}

func bedOn(pool *pgxpool.Pool, cfg billing.Config) bed {
	return bed{billing.New(pool, outbox.New(contracts.All(), outbox.Config{}), cfg), pool}
}

var errCrash = errors.New("the process died before the commit")

// fact is something that billing hears, as a call of its handler.
type fact func(ctx context.Context, tx pgx.Tx) error

func asEvent[E event.Data](tenant uuid.UUID, data E, h func(context.Context, pgx.Tx, event.Of[E]) error) fact {
	e := event.Of[E]{Envelope: event.Envelope{ID: event.NewID(), Tenant: tenant.String(), Subject: data.EventKey()}, Data: data}
	return func(ctx context.Context, tx pgx.Tx) error {
		return h(event.WithTenant(ctx, tenant.String()), tx, e)
	}
}

// order is an order whose facts a test makes up.
type order struct {
	bed
	tenant, id uuid.UUID
}

func (b bed) order() order { return order{b, event.NewID(), event.NewID()} }

func (o order) reserved(attempt int32) fact {
	return asEvent(o.tenant, contracts.CourierReserved{OrderID: o.id, Attempt: attempt, CourierID: courierOf(attempt)}, o.Reserved)
}

func (o order) released(attempt int32) fact {
	return asEvent(o.tenant, contracts.CourierReleased{
		OrderID: o.id, Attempt: attempt, CourierID: courierOf(attempt), Reason: contracts.ReleaseReasonDeclined,
	}, o.Released)
}

func (o order) untold(attempt int32) fact {
	return asEvent(o.tenant, contracts.CourierNotificationFailed{
		OrderID: o.id, Attempt: attempt, CourierID: courierOf(attempt), Reason: "no signal",
	}, o.NotificationFailed)
}

func (o order) overdue(attempt int32, back bool) fact {
	return func(ctx context.Context, tx pgx.Tx) error { return o.Overdue(ctx, tx, o.tenant, o.id, attempt, back) }
}

func courierOf(attempt int32) uuid.UUID { return uuid.UUID{15: byte(attempt)} }

// hear runs facts, each in a transaction as a consumer's.
func (o order) hear(t testing.TB, facts ...fact) {
	t.Helper()
	for _, f := range facts {
		if err := o.try(t.Context(), f); err != nil {
			t.Fatal(err)
		}
	}
}

func (o order) try(ctx context.Context, f fact) error {
	return pgx.BeginFunc(ctx, o.pool, func(tx pgx.Tx) error { return f(ctx, tx) })
}

// told is what billing said of the order, in the order of its numbers, which
// have no gap.
func (o order) told(t testing.TB) (list []event.Data) {
	t.Helper()
	rows, err := o.pool.Query(t.Context(), `SELECT type, sequence, tenant, body FROM waybill.outbox_events WHERE subject = $1 ORDER BY sequence`, o.id.String())
	if err != nil {
		t.Fatal(err)
	}
	var typ, tenant string
	var n int64
	var body []byte
	_, err = pgx.ForEachRow(rows, []any{&typ, &n, &tenant, &body}, func() error {
		data, _ := contracts.New(typ)
		if _, err := data.EventContract().Schema.Decode(body, data); err != nil {
			return err
		}
		if list = append(list, data); n != int64(len(list)) || data.EventSequence() != n || tenant != o.tenant.String() {
			t.Fatalf("event %d of tenant %s is numbered %d, %d", len(list), tenant, n, data.EventSequence())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// owed is the attempts whose fee stands, by what was told. Each fee is told of
// once, and voided once at most.
func (o order) owed(t testing.TB) (attempts []int32) {
	t.Helper()
	open, seen := map[uuid.UUID]int32{}, map[uuid.UUID]bool{}
	for _, data := range o.told(t) {
		switch e := data.(type) {
		case *contracts.PlatformFeeBilled:
			if open[e.FeeID] = e.Attempt; seen[e.FeeID] || len(open) > 1 {
				t.Fatalf("billed twice: %v", open)
			}
			seen[e.FeeID] = true
		case *contracts.PlatformFeeVoided:
			if open[e.FeeID] != e.Attempt {
				t.Fatalf("voided fee %s of attempt %d, which does not stand: %v", e.FeeID, e.Attempt, open)
			}
			delete(open, e.FeeID)
		case *contracts.PlatformFeeFailed:
		default:
			t.Fatalf("told %T", data)
		}
	}
	for _, attempt := range open {
		attempts = append(attempts, attempt)
	}
	return attempts
}

// standing is the attempts whose fee stands, by the books.
func (o order) standing(t testing.TB) (attempts []int32) {
	t.Helper()
	err := pg.InTenant(t.Context(), o.pool, o.tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT attempt FROM billing.fees WHERE order_id = $1 AND state = 'BILLED'`, o.id)
		if err != nil {
			return err
		}
		attempts, err = pgx.CollectRows(rows, pgx.RowTo[int32])
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return attempts
}

// switched is faults that a test turns on and off itself.
type switched struct {
	fails func(name, order, attempt string) bool
}

func (s switched) Fails(name string, id ...string) bool                    { return s.fails(name, id[0], id[1]) }
func (switched) Delay(string) time.Duration                                { return 0 }
func (switched) Poisoned(context.Context, string, uuid.UUID) (bool, error) { return false, nil }
