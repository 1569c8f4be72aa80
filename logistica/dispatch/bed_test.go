package dispatch_test

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
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/dispatch"
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

// bed is a desk on a database of its own, with the real outbox.
type bed struct {
	*dispatch.Desk
	pool *pgxpool.Pool
}

func newBed(t testing.TB, cfg dispatch.Config) bed {
	t.Helper()
	pool, err := pg.Open(t.Context(), pgtest.Migrated(t, tables.Migration(), dispatch.Migration()), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return bed{dispatch.New(pool, outbox.New(contracts.All(), outbox.Config{}), cfg), pool}
}

var errCrash = errors.New("the process died before the commit")

// fact is something that dispatch hears, as a call of its handler.
type fact func(ctx context.Context, tx pgx.Tx) error

func envelope(tenant uuid.UUID, data event.Data) event.Envelope {
	return event.Envelope{ID: event.NewID(), Tenant: tenant.String(), Subject: data.EventKey()}
}

// order is an order whose facts a test makes up.
type order struct {
	bed
	tenant, id uuid.UUID
}

func (b bed) order() order { return order{b, event.NewID(), event.NewID()} }

func (o order) billedEvent(attempt int32) event.Of[contracts.PlatformFeeBilled] {
	data := contracts.PlatformFeeBilled{
		OrderID: o.id, Attempt: attempt, FeeID: feeOf(attempt), CourierID: courierOf(attempt), Amount: 450, Currency: "BRL",
	}
	return event.Of[contracts.PlatformFeeBilled]{Envelope: envelope(o.tenant, data), Data: data}
}

func (o order) billed(attempt int32) fact {
	e := o.billedEvent(attempt)
	return func(ctx context.Context, tx pgx.Tx) error {
		sent, err := o.Send(ctx, e)
		if err != nil {
			return err
		}
		return o.Billed(event.WithTenant(ctx, e.Tenant), tx, e, sent)
	}
}

func (o order) voided(attempt int32) fact {
	data := contracts.PlatformFeeVoided{OrderID: o.id, Attempt: attempt, FeeID: feeOf(attempt), CourierID: courierOf(attempt), Reason: "test"}
	return func(ctx context.Context, tx pgx.Tx) error {
		return o.Voided(event.WithTenant(ctx, o.tenant.String()), tx,
			event.Of[contracts.PlatformFeeVoided]{Envelope: envelope(o.tenant, data), Data: data})
	}
}

func (o order) released(attempt int32) fact {
	data := contracts.CourierReleased{OrderID: o.id, Attempt: attempt, CourierID: courierOf(attempt), Reason: contracts.ReleaseReasonDeclined}
	return func(ctx context.Context, tx pgx.Tx) error {
		return o.Released(event.WithTenant(ctx, o.tenant.String()), tx,
			event.Of[contracts.CourierReleased]{Envelope: envelope(o.tenant, data), Data: data})
	}
}

func courierOf(attempt int32) uuid.UUID { return uuid.UUID{14: 1, 15: byte(attempt)} }

func feeOf(attempt int32) uuid.UUID { return uuid.UUID{14: 2, 15: byte(attempt)} }

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

// told is what dispatch said of the order, in the order of its numbers, which
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

// standing is the attempts whose notice stands.
func (o order) standing(t testing.TB) (attempts []int32) {
	t.Helper()
	err := pg.InTenant(t.Context(), o.pool, o.tenant.String(), func(tx pgx.Tx) error {
		rows, err := tx.Query(t.Context(), `SELECT attempt FROM dispatch.notices WHERE order_id = $1 AND state = 'SENT'`, o.id)
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

func (o order) state(t testing.TB) dispatch.State {
	t.Helper()
	n, err := o.Notice(t.Context(), o.tenant, o.id)
	if err != nil && !errors.Is(err, dispatch.ErrNotFound) {
		t.Fatal(err)
	}
	return n.State
}

// failing is notifications that a test has fail, by order and attempt.
type failing map[string]bool

func (f failing) Fails(_ string, id ...string) bool { return f[id[0]+id[1]] }
func (failing) Delay(string) time.Duration          { return 0 }
