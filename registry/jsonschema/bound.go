package jsonschema

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// placeLimit bounds the objects and lists of a schema and all that it refers
// to: to find a place among them is linear in the library.
const placeLimit = 10_000

// sizeLimit bounds their letters, in bytes.
const sizeLimit = 16 << 20

// Numbers are compared exactly, so that one in few letters could take gigabytes.
// One with an exponent, or longer than usual, counts as a place.
const (
	digitLimit    = 100
	exponentLimit = 400
	shortNumber   = 20
)

// plain turns a text that was read into what the library takes, and counts its
// places.
func plain(v any, places *int) (any, error) {
	switch v := v.(type) {
	case object:
		out := make(map[string]any, len(v))
		for _, m := range v {
			e, err := plain(m.value, places)
			if err != nil {
				return nil, err
			}
			out[m.key] = e
		}
		return out, count(places)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			e, err := plain(v[i], places)
			if err != nil {
				return nil, err
			}
			out[i] = e
		}
		return out, count(places)
	case json.Number:
		if err := modest(v); err != nil || len(v) <= shortNumber && !strings.ContainsAny(v.String(), "eE") {
			return v, err
		}
		return v, count(places)
	}
	return v, nil
}

func count(places *int) error {
	*places++
	if *places > placeLimit {
		return fmt.Errorf("it and what it refers to have more than %d objects and lists; divide it into schemas of their own", placeLimit)
	}
	return nil
}

// modest refuses numbers that no schema has need of.
func modest(n json.Number) error {
	digits, exponent, _ := strings.Cut(strings.ToLower(n.String()), "e")
	e, err := strconv.Atoi(strings.TrimPrefix(exponent, "+"))
	if exponent != "" && err != nil || max(e, -e) > exponentLimit || len(digits) > digitLimit {
		return fmt.Errorf("the number %.40s is too long; keep to %d digits and exponents up to %d", n, digitLimit, exponentLimit)
	}
	return nil
}

// valueKey is one for values that JSON Schema calls equal: 1 is 1.0, and the
// order of members does not count.
func valueKey(v any) string {
	b, err := json.Marshal(reduced(v))
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// decimal writes a number in one way: without zeros at either end, and with an
// exponent.
func decimal(n string) string {
	digits, exponent, _ := strings.Cut(strings.ToLower(n), "e")
	e, _ := strconv.Atoi(strings.TrimPrefix(exponent, "+"))
	digits, minus := strings.CutPrefix(digits, "-")
	whole, part, _ := strings.Cut(digits, ".")
	digits = strings.TrimLeft(whole+part, "0")
	e -= len(part)
	short := strings.TrimRight(digits, "0")
	if short == "" {
		return "0"
	}
	sign := ""
	if minus {
		sign = "-"
	}
	return fmt.Sprintf("%s%se%d", sign, short, e+len(digits)-len(short))
}

func reduced(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for k, e := range v {
			out[k] = reduced(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = reduced(v[i])
		}
		return out
	case json.Number:
		return json.Number(decimal(v.String()))
	}
	return v
}
