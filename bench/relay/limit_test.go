package relay

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/outbox/message"
)

// messageOf is the content of a pgoutput message of the outbox's: 'M', flags,
// position, prefix, length, content.
func messageOf(t *testing.T, data []byte) (content []byte, ok bool) {
	t.Helper()
	if data[0] != 'M' {
		return nil, false
	}
	prefix, rest, ok := bytes.Cut(data[10:], []byte{0})
	if !ok || string(prefix) != message.Prefix {
		return nil, false
	}
	if n := binary.BigEndian.Uint32(rest); int(n) != len(rest)-4 {
		t.Fatalf("a message of %d bytes says it has %d", len(rest)-4, n)
	}
	return rest[4:], true
}

func recordOf(col [message.Columns][]byte) *kgo.Record {
	sequence := int64(binary.BigEndian.Uint64(col[message.Sequence]))
	return &kgo.Record{Key: col[message.Subject], Headers: []kgo.RecordHeader{
		{Key: event.HeaderSequence, Value: []byte(strconv.FormatInt(sequence, 10))},
	}}
}

func TestNoPasswordOnTheCommandLine(t *testing.T) {
	for dsn, want := range map[string]string{
		"postgres://u:secret@h:1/d?sslmode=disable":    "postgres://u@h:1/d?sslmode=disable",
		"postgres://u@h/d?password=secret":             "postgres://u@h/d",
		"host=h password=secret dbname=d":              "host=h  dbname=d",
		`host=h password = 'a \' secret' user=u`:       "host=h  user=u",
		"host=h user=u":                                "host=h user=u",
		"postgresql://u:secret@h/d?application_name=a": "postgresql://u@h/d?application_name=a",
	} {
		if got := withoutPassword(dsn); got != want {
			t.Errorf("%q became %q", dsn, got)
		}
	}
}
