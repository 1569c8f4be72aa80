package interop

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/server"
)

// The claims about what is read are in proto.py. Its serializer sends
// descriptors, names a type by numbers before the value, and asks for
// descriptors to read.
func TestPythonWritesAndReadsProtobuf(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	topic := h.topic("orders")
	out, failed := h.try("proto.py", order{"topic": topic, "group": brokertest.Group(t, "python")})
	if failed || !strings.HasSuffix(out, "every message\n") {
		t.Fatalf("%s", out)
	}
	want := []string{topic + "-value", "interop/person.proto"}
	subjects, err := h.client.Subjects(t.Context(), "")
	if slices.Sort(want); err != nil || !slices.Equal(subjects, want) {
		t.Errorf("subjects %v, %v", subjects, err)
	}
	// A type is the second one of the file, the second one within that, or the
	// first one within that; entries of maps count.
	whole, line, part := []byte{2, 2}, []byte{4, 2, 2}, []byte{6, 2, 2, 0}
	types, first := [][]byte{whole, line, part, whole, line, part, whole, whole, line, part}, 0
	for i, rec := range h.read(topic, len(types)) {
		id, body, err := registry.SplitHeader(rec.Value)
		if first == 0 {
			first = id
		}
		if err != nil || (id == first) != (i < 7) { // the wider type is another schema
			t.Errorf("record %d: schema %d, %v", i, id, err)
		}
		if !bytes.HasPrefix(body, types[i]) {
			t.Errorf("record %d: its type is %v, want %v", i, body[:min(4, len(body))], types[i])
		}
	}
}
