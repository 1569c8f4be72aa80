package contracts_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/internal/avrogen/avrogentest"
	"github.com/waybillhq/waybill/logistica/contracts"
)

func TestGeneratedCodeFollowsTheSchemas(t *testing.T) {
	avrogentest.CheckUpToDate(t, ".")
}

func TestEveryContractSurvivesTheWire(t *testing.T) {
	for _, c := range contracts.All() {
		t.Run(c.Type, func(t *testing.T) { avrogentest.CheckRoundTrip(t, c, contracts.New) })
	}
}

func TestEveryEnumHasADefault(t *testing.T) {
	for _, c := range contracts.All() {
		avrogentest.CheckEnumDefaults(t, c)
	}
}

func TestEveryContractParsesAgainToTheSame(t *testing.T) {
	for _, c := range contracts.All() {
		again, err := event.NewContract(c.Topic, c.Source, c.Text)
		if err != nil {
			t.Fatal(err)
		}
		if again.Subject() != c.Subject() || again.Fingerprint != c.Fingerprint {
			t.Errorf("%s became %s", c.Subject(), again.Subject())
		}
		for _, ours := range []string{`"topic"`, `"source"`, `"key"`, `"sequence"`} {
			if strings.Contains(c.Text, ours+":") {
				t.Errorf("%s registers our attribute %s", c.Subject(), ours)
			}
		}
	}
}

func TestAllIsSortedBySubject(t *testing.T) {
	sorted := slices.IsSortedFunc(contracts.All(), func(a, b *event.Contract) int {
		return strings.Compare(a.Subject(), b.Subject())
	})
	if !sorted {
		t.Error("All is out of order")
	}
}

func TestNewDoesNotKnowStrangers(t *testing.T) {
	for _, typ := range []string{"", "OrderCreated", "logistica.orders.CoarsePlace"} {
		if d, ok := contracts.New(typ); ok || d != nil {
			t.Errorf("New(%q) is a %T", typ, d)
		}
	}
}

func TestKeyAndSequenceAreTheOrders(t *testing.T) {
	id := uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057")
	for _, e := range []event.Data{
		contracts.OrderCreated{OrderID: id, Version: 7},
		contracts.OrderStatusChanged{OrderID: id, Version: 7},
		&contracts.OrderDelivered{OrderID: id, Version: 7},
	} {
		if e.EventKey() != "01890a5d-ac96-774b-bcce-b302099a8057" || e.EventSequence() != 7 {
			t.Errorf("%T: key %s, sequence %d", e, e.EventKey(), e.EventSequence())
		}
	}
}

func TestAnOrderIDThatWasNeverSetIsNoKey(t *testing.T) {
	if key := (contracts.OrderCreated{}).EventKey(); key != "" {
		t.Errorf("key %q", key)
	}
}

func TestEnumValuesOutsideTheSetDoNotEncode(t *testing.T) {
	e := contracts.OrderStatusChanged{
		From: contracts.OrderStateCreated, To: contracts.OrderStateAssigning, Actor: contracts.ActorSystem,
	}
	schema := e.EventContract().Schema
	if _, err := schema.Encode(e); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []contracts.OrderState{"", "created", "LOST"} {
		e.To = bad
		if _, err := schema.Encode(e); err == nil || bad.Valid() {
			t.Errorf("state %q: encodes %v, valid %v", bad, err == nil, bad.Valid())
		}
	}
	for _, s := range e.From.Values() {
		if e.To = s; !s.Valid() {
			t.Errorf("state %q is not valid", s)
		}
		if _, err := schema.Encode(e); err != nil {
			t.Error(err)
		}
	}
}

func BenchmarkEncodeOrderCreated(b *testing.B) {
	at := time.UnixMicro(1_700_000_000_000_000).UTC()
	place := contracts.CoarsePlace{District: "Pinheiros", Lat: -23.567, Lng: -46.692}
	e := contracts.OrderCreated{
		OrderID: uuid.MustParse("01890a5d-ac96-774b-bcce-b302099a8057"), Version: 1,
		Items: []contracts.OrderItem{
			{Name: "Pão de queijo", Quantity: 6, UnitPrice: 450}, {Name: "Café", Quantity: 1, UnitPrice: 700},
		},
		Total: 3400, Currency: "BRL", Pickup: place, Dropoff: place, PromisedAt: &at,
	}
	schema := e.EventContract().Schema
	var buf []byte
	encode := func(v any) func(*testing.B) {
		return func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if buf, err = schema.AppendEncode(buf[:0], v); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(buf)), "bytes")
		}
	}
	b.Run("value", encode(e))
	b.Run("pointer", encode(&e))
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var d contracts.OrderCreated
			if _, err := schema.Decode(buf, &d); err != nil {
				b.Fatal(err)
			}
		}
	})
}
