package orders

import (
	"errors"
	"math"
	"math/big"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func acceptable() NewOrder {
	return NewOrder{
		Pickup:  Place{Street: "Rua Augusta", Number: "1508", CEP: "01304-001", District: "Consolação", Lat: -23.55, Lng: -46.65},
		Dropoff: Place{Street: "Avenida Paulista", Number: "s/n", CEP: "01310200", District: "Bela Vista", Lat: -90, Lng: 180},
		Items:   []Item{{Name: "Café", Quantity: 1, UnitPrice: 0}},
	}
}

func TestEachFieldIsRefusedByName(t *testing.T) {
	at := func(d time.Duration) *time.Time { m := noon.Add(d); return &m }
	for field, spoil := range map[string]func(*NewOrder){
		"pickup.street":       func(n *NewOrder) { n.Pickup.Street = " " },
		"pickup.number":       func(n *NewOrder) { n.Pickup.Number = strings.Repeat("9", 21) },
		"pickup.cep":          func(n *NewOrder) { n.Pickup.CEP = "1304-001" },
		"pickup.district":     func(n *NewOrder) { n.Pickup.District = strings.Repeat("é", 121) },
		"pickup.lat":          func(n *NewOrder) { n.Pickup.Lat = 90.0001 },
		"dropoff.lng":         func(n *NewOrder) { n.Dropoff.Lng = -180.5 },
		"dropoff.lat":         func(n *NewOrder) { n.Dropoff.Lat = math.NaN() },
		"dropoff.cep":         func(n *NewOrder) { n.Dropoff.CEP = "01310-2000" },
		"dropoff.reference":   func(n *NewOrder) { n.Dropoff.Reference = "a\x00b" },
		"customer.name":       func(n *NewOrder) { n.Customer.Name = "\xff" },
		"customer.phone":      func(n *NewOrder) { n.Customer.Phone = "call me" },
		"items":               func(n *NewOrder) { n.Items = nil },
		"items[0].name":       func(n *NewOrder) { n.Items[0].Name = "" },
		"items[0].quantity":   func(n *NewOrder) { n.Items[0].Quantity = 0 },
		"items[0].unit_price": func(n *NewOrder) { n.Items[0].UnitPrice = -1 },
		"promised_at":         func(n *NewOrder) { n.PromisedAt = at(0) },
	} {
		n := acceptable()
		spoil(&n)
		n = n.normalised()
		_, err := n.validate(noon)
		var bad *Invalid
		if !errors.As(err, &bad) || len(bad.Fields) != 1 || bad.Fields[0].Field != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	n := acceptable().normalised()
	n.PromisedAt = at(time.Second)
	if total, err := n.validate(noon); err != nil || total != 0 {
		t.Errorf("acceptable: total %d, %v", total, err)
	}
}

func TestTotalIsExactOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := acceptable().normalised()
		n.Items = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Item {
			return Item{
				Name: "x", Quantity: rapid.Int32Range(1, MaxQuantity).Draw(t, "quantity"),
				UnitPrice: rapid.Int64Range(0, maxUnitPrice).Draw(t, "price"),
			}
		}), 1, MaxItems).Draw(t, "items")
		want := new(big.Int)
		for _, i := range n.Items {
			want.Add(want, new(big.Int).Mul(big.NewInt(int64(i.Quantity)), big.NewInt(i.UnitPrice)))
		}
		total, err := n.validate(noon)
		if want.Cmp(big.NewInt(maxTotal)) > 0 {
			if err == nil {
				t.Fatalf("accepted a total of %s as %d", want, total)
			}
		} else if err != nil || total != want.Int64() {
			t.Fatalf("total %d, want %s: %v", total, want, err)
		}
	})
}

func TestEveryStateAndActorIsInTheContract(t *testing.T) {
	for _, s := range States() {
		if e := changedEvent(Order{State: s}, s, Move{Actor: System}); !e.From.Valid() || !e.To.Valid() {
			t.Errorf("%s is not in the contract", s)
		}
	}
	for _, a := range []Actor{Merchant, Courier, System} {
		if e := changedEvent(Order{}, Created, Move{Actor: a}); !e.Actor.Valid() {
			t.Errorf("%s is not in the contract", a)
		}
	}
}

func TestTextIsOneLineThatTurnsNothingAround(t *testing.T) {
	for s, ok := range map[string]bool{
		"Pão de açúcar": true, "شارع\u200f الملك": true, "👩‍🍳": true, "a\u200eb": true,
		"a\u2028b": false, "a\u2029b": false, "a\u202eb": false, "a\u202ab": false, "a\u2066b": false, "a\u2069b": false,
		"a\x00b": false, "a\u0085b": false, "a\x7f": false, "a\nb": false, "a\xffb": false,
	} {
		var bad Invalid
		text(&bad, "name", s, 1, MaxText)
		if (bad.err() == nil) != ok {
			t.Errorf("%q: %v", s, bad.err())
		}
	}
}
