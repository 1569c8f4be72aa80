package analytics_test

import (
	"context"
	"errors"
	"flag"
	"hash/fnv"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/twmb/avro"
	"go.uber.org/goleak"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/analytics"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/projection"
)

// The property takes dozens of transactions for each check: fewer of them,
// unless the command line says otherwise.
func TestMain(m *testing.M) {
	flag.Parse()
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := f.Value.Set("25"); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// plain decodes what was written by the reader's own schema.
type plain struct{}

func (plain) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	_, err := reader.Decode(value, into)
	return err
}

// bed is a projector on a database of its own.
type bed struct {
	*analytics.Model
	projector *analytics.Projector
	pool      *pgxpool.Pool
}

func newBed(t testing.TB) *bed {
	t.Helper()
	pool, err := pg.Open(t.Context(), pgtest.Migrated(t, projection.Migration(), analytics.Migration()), pg.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	log := projection.NewLog(pool, projection.LogConfig{Logger: slog.New(slog.DiscardHandler)})
	if err := log.EnsureDays(t.Context(), time.Now()); err != nil {
		t.Fatal(err)
	}
	return &bed{analytics.New(pool), analytics.NewProjector(log, plain{}), pool}
}

// partitions of every topic.
const partitions = 3

// said makes the event that data is the body of.
func said(t testing.TB, tenant uuid.UUID, at time.Time, data event.Data) projection.Event {
	t.Helper()
	c := data.EventContract()
	value, err := c.Schema.Encode(data)
	if err != nil {
		t.Fatal(err)
	}
	var v any
	if _, err := c.Schema.Decode(value, &v); err != nil {
		t.Fatal(err)
	}
	text, err := c.Schema.EncodeJSON(v)
	if err != nil {
		t.Fatal(err)
	}
	env := c.Envelope(event.WithTenant(t.Context(), tenant.String()), data, at)
	key := fnv.New32a()
	_, _ = key.Write([]byte(env.Subject))
	return projection.Event{
		Envelope: env, Position: event.Position{Topic: c.Topic, Partition: int32(key.Sum32() % partitions)},
		Value: value, Data: text,
	}
}

var errCrash = errors.New("the process died before the commit")

// write gives a batch to the projector in a transaction of its own.
func (b *bed) write(ctx context.Context, crash bool, es ...projection.Event) error {
	err := pgx.BeginFunc(ctx, b.pool, func(tx pgx.Tx) error {
		if err := b.projector.Write(ctx, tx, es); err != nil || !crash {
			return err
		}
		return errCrash
	})
	if errors.Is(err, errCrash) {
		return nil
	}
	return err
}

var platform = tenants.Platform

func moved(order uuid.UUID, version int64, from, to contracts.OrderState) contracts.OrderStatusChanged {
	return contracts.OrderStatusChanged{OrderID: order, Version: version, From: from, To: to, Actor: "SYSTEM"}
}

func duty(courier uuid.UUID, version int64, from, to contracts.CourierState) contracts.CourierStatusChanged {
	return contracts.CourierStatusChanged{CourierID: courier, Version: version, From: from, To: to}
}
