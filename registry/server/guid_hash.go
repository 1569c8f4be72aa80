package server

import (
	"crypto/md5" //nolint:gosec // Confluent's name of a schema, which nothing rests on
	"encoding/binary"
	"encoding/json"
	"hash"
	"maps"
	"slices"
	"unicode/utf16"

	"github.com/google/uuid"
)

// guid is the schema's name in every registry, Confluent's too, since it is made
// of what the schema says. Metadata and rules are part of it, in the order in
// which Confluent's classes hold them and not that of the request.
func (c *content) guid() uuid.UUID {
	h := md5.New() //nolint:gosec // as above
	write(h, c.text)
	for _, r := range c.refs {
		write(h, r.Name, r.Subject)
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(r.Version)))
	}
	if c.metadata != nil {
		var m metadata
		_ = json.Unmarshal(c.metadata, &m) // what has another shape is not Confluent's, and counts as far as it is read
		h.Write([]byte{1})                 // sets one that is empty apart from none
		m.hash(h)
	}
	if c.rules != nil {
		var r ruleSet
		_ = json.Unmarshal(c.rules, &r)
		h.Write([]byte{1})
		r.hash(h)
	}
	return uuid.UUID(h.Sum(nil))
}

// metadata and ruleSet are what a GUID sees of them.
type metadata struct {
	Tags       map[string][]string `json:"tags"`
	Properties map[string]string   `json:"properties"`
	Sensitive  []string            `json:"sensitive"`
}

func (m metadata) hash(h hash.Hash) {
	for _, key := range sorted(slices.Collect(maps.Keys(m.Tags))) {
		write(h, key)
		write(h, sorted(m.Tags[key])...)
	}
	writePairs(h, m.Properties)
	write(h, sorted(m.Sensitive)...)
}

type ruleSet struct {
	Migration []rule `json:"migrationRules"`
	Domain    []rule `json:"domainRules"`
	Encoding  []rule `json:"encodingRules"`
	EnableAt  string `json:"enableAt"`
}

func (r ruleSet) hash(h hash.Hash) {
	for _, rules := range [][]rule{r.Migration, r.Domain, r.Encoding} {
		for _, rule := range rules {
			rule.hash(h)
		}
	}
	write(h, r.EnableAt)
}

type rule struct {
	Name      string            `json:"name"`
	Doc       string            `json:"doc"`
	Kind      string            `json:"kind"`
	Mode      string            `json:"mode"`
	Type      string            `json:"type"`
	Tags      []string          `json:"tags"`
	Params    map[string]string `json:"params"`
	Expr      string            `json:"expr"`
	OnSuccess string            `json:"onSuccess"`
	OnFailure string            `json:"onFailure"`
	Disabled  bool              `json:"disabled"`
}

// UnmarshalJSON fills in what a rule is that does not say it.
func (r *rule) UnmarshalJSON(text []byte) error {
	type plain rule
	in := plain{Kind: "TRANSFORM", Mode: "WRITEREAD"}
	err := json.Unmarshal(text, &in)
	*r = rule(in)
	return err
}

func (r rule) hash(h hash.Hash) {
	write(h, r.Name, r.Doc, r.Kind, r.Mode, r.Type)
	write(h, sorted(r.Tags)...)
	writePairs(h, r.Params)
	write(h, r.Expr, r.OnSuccess, r.OnFailure)
	if r.Disabled {
		h.Write([]byte{1})
	}
}

func write(h hash.Hash, all ...string) {
	for _, s := range all {
		h.Write([]byte(s))
	}
}

func writePairs(h hash.Hash, pairs map[string]string) {
	for _, key := range sorted(slices.Collect(maps.Keys(pairs))) {
		write(h, key, pairs[key])
	}
}

// sorted is a set in Java's order, by units of UTF-16.
func sorted(all []string) []string {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b string) int {
		return slices.Compare(utf16.Encode([]rune(a)), utf16.Encode([]rune(b)))
	})
	return slices.Compact(all)
}
