package server

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Kinds of records in the topic, as Confluent names them.
const (
	keySchema        = "SCHEMA"
	keyConfig        = "CONFIG"
	keyMode          = "MODE"
	keyDeleteSubject = "DELETE_SUBJECT"
	keyClearSubject  = "CLEAR_SUBJECT"
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

// ruleKey is the key of a subject's config or mode, or with "" of the global
// one, which has no subject. Confluent wrote that as null until 2021.
func ruleKey(kind, subject string) []byte {
	if subject == "" {
		return encode(recordKey{Type: kind})
	}
	return encode(recordKey{Type: kind, Subject: &subject})
}

// noopKey is the key of the record by which a registry finds the end of the
// topic.
func noopKey() []byte { return []byte(`{"keytype":"NOOP","magic":0}`) }

// highestKey is the key of the highest id given. Confluent reads it as another
// NOOP, whose value it passes over; where the topic is compacted it is another
// key, so that the next registry to start does not write over it.
func highestKey() []byte { return []byte(`{"magic":0,"keytype":"NOOP"}`) }

// The fields of a value stand in Confluent's order. Those that are raw are
// kept as they came: they mean something to Confluent's registry or to its
// clients, and would be lost when a record is written anew.
type schemaValue struct {
	Subject    string          `json:"subject"`
	Version    int             `json:"version"`
	ID         int             `json:"id"`
	Type       string          `json:"schemaType,omitempty"`
	References []reference     `json:"references,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	Rules      json.RawMessage `json:"ruleSet,omitempty"`
	Schema     string          `json:"schema"`
	Deleted    bool            `json:"deleted"`
}

type reference struct {
	Name    string `json:"name"`
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

type configValue struct {
	Subject            string          `json:"subject,omitempty"`
	Alias              json.RawMessage `json:"alias,omitempty"`
	AliasForDeks       json.RawMessage `json:"aliasForDeks,omitempty"`
	Normalize          *bool           `json:"normalize,omitempty"`
	ValidateFields     json.RawMessage `json:"validateFields,omitempty"`
	ValidateNewSchemas json.RawMessage `json:"validateNewSchemas,omitempty"`
	ValidateRules      json.RawMessage `json:"validateRules,omitempty"`
	Level              string          `json:"compatibilityLevel,omitempty"`
	Policy             json.RawMessage `json:"compatibilityPolicy,omitempty"`
	Group              json.RawMessage `json:"compatibilityGroup,omitempty"`
	DefaultMetadata    json.RawMessage `json:"defaultMetadata,omitempty"`
	OverrideMetadata   json.RawMessage `json:"overrideMetadata,omitempty"`
	DefaultRuleSet     json.RawMessage `json:"defaultRuleSet,omitempty"`
	OverrideRuleSet    json.RawMessage `json:"overrideRuleSet,omitempty"`
}

type modeValue struct {
	Subject string `json:"subject,omitempty"`
	Mode    mode   `json:"mode"`
}

type deleteSubjectValue struct {
	Subject string `json:"subject"`
	Version int    `json:"version"`
}

type clearSubjectValue struct {
	Subject string `json:"subject"`
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
