package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/twmb/avro"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/push"
	"github.com/waybillhq/waybill/registry"
)

// bare decodes what was written by the reader's own schema, failing first as
// often as it is told.
type bare struct{ away int }

func (b *bare) Decode(_ context.Context, value []byte, into any, reader *avro.Schema) error {
	if b.away > 0 {
		b.away--
		return fmt.Errorf("ask: %w", registry.ErrUnavailable)
	}
	_, err := reader.Decode(value, into)
	return err
}

func record(t *testing.T, tenant string, d event.Data) (*kgo.Record, *event.Envelope) {
	t.Helper()
	body, err := d.EventContract().Schema.Encode(d)
	if err != nil {
		t.Fatal(err)
	}
	env := d.EventContract().Envelope(event.WithTenant(t.Context(), tenant), d, time.Unix(1_800_000_000, 0))
	return &kgo.Record{Value: body}, &env
}

func TestEachEventGoesToItsTenantAndItsOrder(t *testing.T) {
	tenant, order, reason := event.NewID(), event.NewID(), "the customer, Ana, called"
	for _, d := range []event.Data{
		&contracts.OrderCreated{OrderID: order, Version: 1, Items: []contracts.OrderItem{{Name: "Café", Quantity: 1, UnitPrice: 950}}, Total: 950, Currency: "BRL", Pickup: contracts.CoarsePlace{District: "Sé"}},
		&contracts.OrderStatusChanged{OrderID: order, Version: 2, From: "CREATED", To: "CANCELLED", Reason: &reason, Actor: "MERCHANT"},
		&contracts.OrderDelivered{OrderID: order, Version: 3, DurationMs: 60_000},
	} {
		rec, env := record(t, tenant.String(), d)
		got, err := Route(&bare{})(t.Context(), rec, env)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != 2 || got[0].Channel != "tenant/"+tenant.String() || got[1].Channel != "order/"+order.String() {
			t.Fatalf("%s goes to %+v", env.Type, got)
		}
		requireFull(t, got[0].Message, d)
		requireBare(t, got[1].Message, d)
	}
}

func requireFull(t *testing.T, m push.Message, d event.Data) {
	t.Helper()
	back, _ := contracts.New(d.EventContract().Type)
	line := struct {
		Subject  string
		Sequence int64
		Data     any
	}{Data: back}
	if err := json.Unmarshal(m.Data, &line); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(line.Data, d) || line.Subject != d.EventKey() || line.Sequence != d.EventSequence() {
		t.Errorf("tenant hears %s of %+v", m.Data, d)
	}
}

func requireBare(t *testing.T, m push.Message, d event.Data) {
	t.Helper()
	var line struct {
		Sequence int64
		Data     map[string]string
	}
	var fields map[string]any
	if err := errors.Join(json.Unmarshal(m.Data, &line), json.Unmarshal(m.Data, &fields)); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if !slices.Contains([]string{"type", "time", "sequence", "data"}, name) {
			t.Errorf("the public hears %q", name)
		}
	}
	if line.Sequence != d.EventSequence() {
		t.Errorf("sequence %d", line.Sequence)
	}
	for _, secret := range []string{"Ana", "Sé", "950", "60000", "MERCHANT", d.EventKey()} {
		if strings.Contains(string(m.Data), secret) {
			t.Errorf("the public hears %q in %s", secret, m.Data)
		}
	}
	if _, ok := d.(*contracts.OrderStatusChanged); ok && (line.Data["from"] != "CREATED" || line.Data["to"] != "CANCELLED") {
		t.Errorf("the public hears %s", m.Data)
	}
}

func TestStrangersAreHeardByNobody(t *testing.T) {
	d := &contracts.OrderDelivered{OrderID: event.NewID(), Version: 1}
	for _, tenant := range []string{"", "acme", "*", uuid.Nil.String()[1:]} {
		rec, env := record(t, tenant, d)
		if got, err := Route(&bare{})(t.Context(), rec, env); !errors.Is(err, ErrStranger) || got != nil {
			t.Errorf("tenant %q: %v, %v", tenant, got, err)
		}
	}
	rec, env := record(t, event.NewID().String(), d)
	env.Subject = event.NewID().String()
	if _, err := Route(&bare{})(t.Context(), rec, env); !errors.Is(err, ErrStranger) {
		t.Errorf("another subject: %v", err)
	}
	env.Type = "logistica.orders.OrderEaten"
	if got, err := Route(&bare{})(t.Context(), rec, env); got != nil || err != nil {
		t.Errorf("an unknown type: %v, %v", got, err)
	}
}

func TestRouteWaitsForTheRegistry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		rec, env := record(t, event.NewID().String(), &contracts.OrderDelivered{OrderID: event.NewID(), Version: 1})
		start := time.Now()
		if got, err := Route(&bare{away: 3})(t.Context(), rec, env); err != nil || len(got) != 2 || time.Since(start) != 3*time.Second {
			t.Errorf("%d deliveries after %s: %v", len(got), time.Since(start), err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := Route(&bare{away: 1 << 30})(ctx, rec, env); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("at the end: %v", err)
		}
	})
}
