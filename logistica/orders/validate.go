package orders

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Bounds of an order. They keep its event far below what the log takes.
const (
	MaxItems     = 100
	MaxQuantity  = 10_000
	MaxText      = 120 // characters of a name, street, district or reference
	MaxReason    = 200
	MaxKey       = 128 // bytes of an idempotency key
	maxNumber    = 20
	maxUnitPrice = 1_000_000_000_00 // centavos; more is a slip, not a price
	maxTotal     = 1<<53 - 1        // what a browser's numbers hold exactly
	maxPromise   = 366 * 24 * time.Hour
)

// FieldError says what is wrong with one field of a request.
type FieldError struct {
	Field   string // path as the API writes it, such as items[0].quantity
	Message string
}

// Invalid refuses a request, naming every field that is wrong.
type Invalid struct{ Fields []FieldError }

func (e *Invalid) Error() string {
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = f.Field + " " + f.Message
	}
	return "invalid order: " + strings.Join(parts, "; ")
}

func (e *Invalid) add(field, format string, args ...any) {
	e.Fields = append(e.Fields, FieldError{field, fmt.Sprintf(format, args...)})
}

func (e *Invalid) err() error {
	if len(e.Fields) == 0 {
		return nil
	}
	return e
}

var (
	cepForm   = regexp.MustCompile(`^[0-9]{5}-[0-9]{3}$`)
	phoneForm = regexp.MustCompile(`^[+(]?[0-9][0-9 ()-]{7,23}$`)
)

// normalised is n in the one form that is kept, so that the same request is
// recognised however it was written.
func (n NewOrder) normalised() NewOrder {
	n.Pickup.CEP, n.Dropoff.CEP = dashed(n.Pickup.CEP), dashed(n.Dropoff.CEP)
	if n.PromisedAt != nil {
		p := n.PromisedAt.UTC().Truncate(time.Microsecond)
		n.PromisedAt = &p
	}
	return n
}

// dashed writes a CEP that came as eight digits with its dash.
func dashed(cep string) string {
	if len(cep) == 8 && !strings.Contains(cep, "-") {
		return cep[:5] + "-" + cep[5:]
	}
	return cep
}

// validate checks n as of now and returns what its items cost together.
func (n *NewOrder) validate(now time.Time) (total int64, err error) {
	var bad Invalid
	n.Pickup.validate(&bad, "pickup")
	n.Dropoff.validate(&bad, "dropoff")
	text(&bad, "customer.name", n.Customer.Name, 0, MaxText)
	if phone := n.Customer.Phone; phone != "" && !phoneForm.MatchString(phone) {
		bad.add("customer.phone", "must be a phone number such as +55 11 91234-5678")
	}
	total = n.validateItems(&bad)
	if p := n.PromisedAt; p != nil {
		switch {
		case !p.After(now):
			bad.add("promised_at", "must be in the future")
		case p.After(now.Add(maxPromise)):
			bad.add("promised_at", "must be within a year")
		}
	}
	return total, bad.err()
}

func (n *NewOrder) validateItems(bad *Invalid) (total int64) {
	if len(n.Items) < 1 || len(n.Items) > MaxItems {
		bad.add("items", "must have between 1 and %d entries, has %d", MaxItems, len(n.Items))
		return 0
	}
	for i, item := range n.Items {
		at := "items[" + strconv.Itoa(i) + "]."
		text(bad, at+"name", item.Name, 1, MaxText)
		within(bad, at+"quantity", int64(item.Quantity), 1, MaxQuantity)
		within(bad, at+"unit_price", item.UnitPrice, 0, maxUnitPrice)
		sum, ok := addLine(total, int64(item.Quantity), item.UnitPrice)
		if !ok {
			bad.add("items", "cost more together than the %d centavos that can be written", int64(maxTotal))
			return 0
		}
		total = sum
	}
	return total
}

// addLine is total + quantity × price; ok is false when that exceeds maxTotal.
// Lines that are refused for themselves count as nothing.
func addLine(total, quantity, price int64) (sum int64, ok bool) {
	if quantity <= 0 || price <= 0 {
		return total, true
	}
	if price > (maxTotal-total)/quantity {
		return 0, false
	}
	return total + quantity*price, true
}

func (p *Place) validate(bad *Invalid, at string) {
	text(bad, at+".street", p.Street, 1, MaxText)
	text(bad, at+".number", p.Number, 1, maxNumber)
	text(bad, at+".district", p.District, 1, MaxText)
	text(bad, at+".reference", p.Reference, 0, MaxText)
	if !cepForm.MatchString(p.CEP) {
		bad.add(at+".cep", "must have the form 00000-000")
	}
	degrees(bad, at+".lat", p.Lat, 90)
	degrees(bad, at+".lng", p.Lng, 180)
}

func text(bad *Invalid, field, s string, least, most int) {
	switch n := utf8.RuneCountInString(s); {
	case !utf8.ValidString(s):
		bad.add(field, "must be UTF-8")
	case n > most:
		bad.add(field, "must have at most %d characters, has %d", most, n)
	case strings.ContainsFunc(s, disturbs):
		bad.add(field, "must not contain control characters")
	case least > 0 && strings.TrimSpace(s) == "":
		bad.add(field, "must not be empty")
	}
}

// disturbs tells a character that does not belong into one line of text: a
// control character, of which Postgres takes no NUL; a break of lines or
// paragraphs; one that turns the direction of what stands around it on a page.
// Marks of direction, which right-to-left text needs, stay.
func disturbs(r rune) bool {
	return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' || r >= '\u202a' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

func within(bad *Invalid, field string, v, least, most int64) {
	if v < least || v > most {
		bad.add(field, "must be between %d and %d", least, most)
	}
}

func degrees(bad *Invalid, field string, v, most float64) {
	if math.IsNaN(v) || v < -most || v > most {
		bad.add(field, "must be between -%g and %g degrees", most, most)
	}
}
