package interop

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/waybillhq/waybill/broker/brokertest"
)

// order is what python/client.py is told; see there.
type order map[string]any

// value is a record as an order names it and as client.py shows it.
type value struct {
	Key     string            `json:"key,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	Value   map[string]any    `json:"value"`

	// Of an order that may be refused: with which status, 0 if it was not, -1
	// if it was by the client itself.
	Refused int    `json:"refused,omitempty"`
	Says    string `json:"says,omitempty"`
}

// try runs a script in the environment with Confluent's client.
func (h *house) try(script string, orders ...order) (out string, failed bool) {
	h.Helper()
	return run(h.T, h.told(orders), filepath.Join(part(h.T, "python"), "bin", "python"), filepath.Join("python", script))
}

// told is what a client reads: the orders, with what all of them need.
func (h *house) told(orders []order) string {
	h.Helper()
	for _, o := range orders {
		o["brokers"], o["registry"] = h.brokers(), h.url
		if o["group"] == nil {
			o["group"] = brokertest.Group(h, "foreign")
		}
	}
	in, err := json.Marshal(orders)
	if err != nil {
		h.Fatal(err)
	}
	return string(in)
}

// python is client.py for orders that must succeed.
func (h *house) python(orders ...order) string {
	h.Helper()
	out, failed := h.try("client.py", orders...)
	if failed {
		h.Fatalf("client.py: %s", out)
	}
	return out
}

// values are the records that client.py shows.
func (h *house) values(out string) (all []value) {
	h.Helper()
	for line := range strings.Lines(out) {
		var v value
		if err := json.Unmarshal([]byte(line), &v); err != nil {
			h.Fatalf("%s: %v", out, err)
		}
		all = append(all, v)
	}
	return all
}

const (
	noteV1 = `{"type":"record","name":"Note","namespace":"interop","fields":[{"name":"text","type":"string"}]}`
	noteV2 = `{"type":"record","name":"Note","namespace":"interop","fields":[{"name":"text","type":"string"},{"name":"stars","type":"int","default":3}]}`
	// noteV3 may not follow: its new field has no default.
	noteV3 = `{"type":"record","name":"Note","namespace":"interop","fields":[{"name":"text","type":"string"},{"name":"author","type":"string"}]}`
)

func note(text string) value { return value{Key: "k", Value: map[string]any{"text": text}} }
