package interop

import (
	"math/big"
	"os"
	"testing"
	"time"

	"github.com/twmb/avro"
)

// richText is the schema whose one value all languages write and read.
func richText(t *testing.T) string {
	t.Helper()
	b, err := os.ReadFile("rich.avsc")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func richSchema(t *testing.T) *avro.Schema {
	t.Helper()
	s, err := avro.Parse(richText(t))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// richBody is the value, the same as RICH in python/client.py, as we write it.
func richBody(t *testing.T) []byte {
	t.Helper()
	body, err := richSchema(t).AppendEncode(nil, map[string]any{
		"text":    "Pão de queijo \u2603 \U0001f9c0",
		"small":   int32(-1 << 31),
		"large":   int64(1<<63 - 1),
		"real":    float32(0.5),
		"precise": -1e-300,
		"yes":     true,
		"raw":     []byte{0, 0xff, 0x7f},
		"hash":    []byte{0xde, 0xad, 0xbe, 0xef},
		"price":   big.NewRat(-123456789, 100),
		"at":      time.Date(2026, 2, 28, 23, 59, 59, 999999000, time.UTC),
		"day":     time.Date(1969, 12, 31, 0, 0, 0, 0, time.UTC),
		"id":      "0190163d-8694-739b-aea5-966c26f8ad90",
		"colour":  "GREEN",
		"tags":    []string{"", "a", "ç"},
		"counts":  map[string]int64{"k": -1},
		"maybe":   nil,
		"either":  map[string]any{"n": int32(7)},
		"inner":   map[string]any{"n": int32(-8)},
	})
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// richJSON is the value as `waybill tail` shows it.
const richJSON = `{"text":"Pão de queijo ☃ 🧀","small":-2147483648,"large":9223372036854775807,"real":0.5,"precise":-1e-300,"yes":true,` +
	`"raw":"\u0000\u00ff\u007f","hash":"\u00de\u00ad\u00be\u00ef","price":"\u00f8\u00a42\u00eb","at":1772323199999999,"day":-1,` +
	`"id":"0190163d-8694-739b-aea5-966c26f8ad90","colour":"GREEN","tags":["","a","ç"],"counts":{"k":-1},"maybe":null,` +
	`"either":{"n":7},"inner":{"n":-8}}`
