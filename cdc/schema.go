package cdc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

// Compatibility is the level of the subjects of change events. New schemas read
// what all earlier ones wrote, not only the last one: a topic that keeps the
// last record of each key holds records of every age.
const Compatibility = "BACKWARD_TRANSITIVE"

// Registry registers schemas and gives their ids by fingerprint.
type Registry interface {
	Register(ctx context.Context, level string, contracts ...*event.Contract) (map[int64]int, error)
}

type schemaField struct {
	Name     string          `json:"name"`
	Type     json.RawMessage `json:"type"`
	Default  json.RawMessage `json:"default,omitempty"`
	Doc      string          `json:"doc,omitempty"`
	Column   string          `json:"column,omitempty"`   // where Avro does not take its name
	Postgres string          `json:"postgres,omitempty"` // type
}

type schemaRecord struct {
	Type      string        `json:"type"`
	Name      string        `json:"name"`
	Namespace string        `json:"namespace,omitempty"`
	Doc       string        `json:"doc,omitempty"`
	Fields    []schemaField `json:"fields"`
}

func raw(s string) json.RawMessage { return json.RawMessage(s) }

// recordName is that of the events' records, in a namespace of each table.
const recordName = "cdc"

// schemaText is the schema of a table's change events. version 1 has the plain
// name; see [schemas.register].
func schemaText(t Table, columns []column, version int) (string, error) {
	suffix := ""
	if version > 1 {
		suffix = fmt.Sprintf("_v%d", version)
	}
	row := schemaRecord{Type: "record", Name: "row" + suffix, Fields: []schemaField{}}
	for _, c := range columns {
		f := schemaField{Name: c.field, Type: raw(c.avro()), Default: raw("null"), Postgres: c.columnType.name}
		if c.field != c.name {
			f.Column = c.name
		}
		row.Fields = append(row.Fields, f)
	}
	rowText, err := json.Marshal(row)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(schemaRecord{
		Type: "record", Name: recordName + suffix, Namespace: avroName(t.Schema) + "." + avroName(t.Name),
		Doc: "A change of a row of " + t.String() + ". Of two records of one key, the one with the higher (timeline, lsn, ordinal) holds.",
		Fields: []schemaField{
			{Name: "op", Type: raw(`"string"`), Doc: "c: created, u: updated, d: deleted, r: read by a snapshot."},
			{Name: "before", Type: raw(`["null",` + string(rowText) + `]`), Default: raw("null"), Doc: "The row before, if the table's replica identity keeps it."},
			{Name: "after", Type: raw(`["null","row` + suffix + `"]`), Default: raw("null"), Doc: "The row as it is now, null once it is deleted."},
			{Name: "before_key_only", Type: raw(`"boolean"`), Default: raw("false"), Doc: "Of before, only the key is known; the rest is null."},
			{Name: "unchanged", Type: raw(`{"type":"array","items":"string"}`), Default: raw("[]"), Doc: "Large values of after that this change left as they were and that Postgres did not repeat: null here, to be kept by the reader."},
			{Name: "omitted", Type: raw(`{"type":"array","items":"string"}`), Default: raw("[]"), Doc: "Values that could not be carried, such as after.document: null here, to be fetched from the table."},
			{Name: "xid", Type: raw(`"long"`), Doc: "The transaction, as Postgres numbers it."},
			{Name: "timeline", Type: raw(`"long"`), Doc: "The database's history: a promoted standby begins a new one."},
			{Name: "lsn", Type: raw(`"long"`), Doc: "Where in the WAL it committed."},
			{Name: "ordinal", Type: raw(`"long"`), Doc: "Ascends within the transaction."},
			{Name: "committed_at", Type: raw(`{"type":"long","logicalType":"timestamp-micros"}`), Doc: "When it committed, by the database's clock."},
		},
	})
	return string(text), err
}

// maxVersions bounds the search for a record's name.
const maxVersions = 1000

// registered is a schema the registry knows.
type registered struct {
	id  int
	typ string // full name of the record, which is the event's type
}

// schemas keeps what is registered, and what the catalog said of types.
type schemas struct {
	registry Registry
	source   string

	mu    sync.Mutex
	known map[string]registered // by topic and text of version 1
	types types
}

// register gives the schema of a table with such columns. Where the registry
// refuses it under the record's name, since the table has changed beyond what
// readers of earlier events bear, the record gets another name: cdc_v2 and so
// on. A table that changes back finds its old name again.
func (s *schemas) register(ctx context.Context, t Table, columns []column) (registered, error) {
	first, err := schemaText(t, columns, 1)
	if err != nil {
		return registered{}, fmt.Errorf("schema of %s: %w", t, err)
	}
	if r, ok := s.known[t.Topic+" "+first]; ok {
		return r, nil
	}
	for version := 1; version <= maxVersions; version++ {
		text, err := schemaText(t, columns, version)
		if err != nil {
			return registered{}, fmt.Errorf("schema of %s: %w", t, err)
		}
		contract, err := event.NewContract(t.Topic, s.source, text)
		if err != nil {
			return registered{}, fmt.Errorf("schema of %s: %w", t, err)
		}
		ids, err := s.registry.Register(ctx, Compatibility, contract)
		var refused *registry.IncompatibleError
		if errors.As(err, &refused) {
			continue
		}
		if err != nil {
			return registered{}, fmt.Errorf("schema of %s: %w", t, err)
		}
		r := registered{ids[contract.Fingerprint], contract.Type}
		s.known[t.Topic+" "+first] = r
		return r, nil
	}
	return registered{}, fmt.Errorf("schema of %s: the registry refuses it under %d names", t, maxVersions)
}
