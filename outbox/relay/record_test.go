package relay

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/event"
)

func bigint(v int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(v)) }

// The record has the headers the envelope says, whatever stands in the row.
func TestRecordsHaveTheEnvelopesHeaders(t *testing.T) {
	var m recorder
	rapid.Check(t, func(t *rapid.T) {
		text := func(name string) string { return rapid.StringN(0, 30, -1).Draw(t, name) }
		env := event.Envelope{
			ID:     uuid.UUID(rapid.SliceOfN(rapid.Byte(), 16, 16).Draw(t, "id")),
			Source: text("source"), Type: text("type"), Subject: text("subject"), Tenant: text("tenant"),
			Time:          time.UnixMicro(rapid.Int64Range(-62135596800e6, 253402300799e6).Draw(t, "time")).UTC(),
			Sequence:      rapid.OneOf(rapid.Just(int64(0)), rapid.Int64()).Draw(t, "sequence"),
			CorrelationID: text("correlation"), CausationID: text("causation"), TraceParent: text("trace"),
		}
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		r := row{
			env.ID[:], []byte("topic"), []byte(env.Subject), []byte(env.Source), []byte(env.Type),
			bigint(env.Time.UnixMicro() - postgresEpoch), []byte(env.Tenant), bigint(env.Sequence),
			[]byte(env.CorrelationID), []byte(env.CausationID), []byte(env.TraceParent), bigint(1), body,
		}
		if err := r.check(); err != nil {
			t.Fatal(err)
		}
		rec := m.make(&r, 7)
		i := 0
		env.Headers(func(name, value string) {
			if i >= len(rec.Headers) || rec.Headers[i].Key != name || string(rec.Headers[i].Value) != value {
				t.Fatalf("header %d is %+v, want %s=%q", i, rec.Headers[min(i, len(rec.Headers)-1)], name, value)
			}
			i++
		})
		if i != len(rec.Headers) {
			t.Fatalf("%d headers, want %d", len(rec.Headers), i)
		}
		if string(rec.Key) != env.Subject || string(rec.Prefix) != "\x00\x00\x00\x00\x07" || string(rec.Value) != string(body) {
			t.Fatalf("record %+v", rec)
		}
	})
}
