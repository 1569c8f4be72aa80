package server

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

const stampHeader = "waybill-write"

// intent is why a record was written.
type intent string

const (
	change intent = "change"
	// keep writes again what holds under its key, hidden by a refused record.
	keep intent = "keep"
	// void deletes a refused record, not whatever else has its key.
	void intent = "void"
)

// stamp says under which sight of the topic a record was written. A record
// without one comes from another registry and is taken at its word.
type stamp struct {
	token string // one write of one server, which may be several records
	after int64  // the last offset the writer had read
	intent
}

func (s stamp) header() kgo.RecordHeader {
	v := fmt.Sprintf("%s %d %s", s.token, s.after, s.intent)
	return kgo.RecordHeader{Key: stampHeader, Value: []byte(v)}
}

func readStamp(r *kgo.Record) (stamp, bool) {
	for _, h := range r.Headers {
		if h.Key != stampHeader {
			continue
		}
		parts := strings.Fields(string(h.Value))
		if len(parts) != 3 {
			return stamp{}, false
		}
		after, err := strconv.ParseInt(parts[1], 10, 64)
		return stamp{parts[0], after, intent(parts[2])}, err == nil
	}
	return stamp{}, false
}
