package server

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Kinds of records in the topic, as Confluent names them.
const (
	keySchema        = "SCHEMA"
	keyConfig        = "CONFIG"
	keyDeleteSubject = "DELETE_SUBJECT"
	keyNoop          = "NOOP"
)

// recordKey is the key of a record. Where the topic is compacted, two keys
// are one only if their bytes are, so the order of the fields matters.
type recordKey struct {
	Type    string  `json:"keytype"`
	Subject *string `json:"subject,omitempty"`
	Version int     `json:"version,omitempty"`
	Magic   int     `json:"magic"`
}

func schemaKey(subject string, version int) []byte {
	return encode(recordKey{keySchema, &subject, version, 1})
}

// configKey is the key of a subject's level, or with "" of the global one,
// whose subject Confluent writes as null.
func configKey(subject string) []byte {
	if subject == "" {
		return []byte(`{"keytype":"CONFIG","subject":null,"magic":0}`)
	}
	return encode(recordKey{Type: keyConfig, Subject: &subject})
}

func noopKey() []byte { return []byte(`{"keytype":"NOOP","magic":0}`) }

type schemaValue struct {
	Subject    string      `json:"subject"`
	Version    int         `json:"version"`
	ID         int         `json:"id"`
	Type       string      `json:"schemaType,omitempty"`
	References []reference `json:"references,omitempty"`
	Schema     string      `json:"schema"`
	Deleted    bool        `json:"deleted"`
}

type reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

type configValue struct {
	Level string `json:"compatibilityLevel"`
}

type deleteSubjectValue struct {
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

// noopValue keeps the highest id given from being given again once its schema
// is gone for good. Confluent does not read the value of a NOOP.
type noopValue struct {
	HighestID int `json:"highestId"`
}

// encode writes what cannot fail to be JSON.
func encode(v any) []byte {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false) // as Jackson: keys must be equal byte for byte
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("encode %T: %v", v, err))
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

// draft is a record to be written; a nil value deletes its key.
type draft struct{ key, value []byte }

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
