// Package schemas compares a folder of contracts with what they have been: in
// a registry, or in git. It decides nothing about what may follow what; that is
// registry/compat's.
package schemas

import (
	"bytes"
	"fmt"

	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/internal/avrogen/gen"
	"github.com/waybillhq/waybill/registry/compat"
)

// Contract is a contract of the working tree, parsed.
type Contract struct {
	gen.Contract
	Avro *avro.Schema
}

// Tree reads the contracts of a folder of *.avsc files, by subject ascending.
func Tree(dir string) ([]Contract, error) {
	files, err := gen.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	return parse(files)
}

func parse(files map[string][]byte) ([]Contract, error) {
	all, err := gen.Contracts(files)
	if err != nil {
		return nil, err
	}
	out := make([]Contract, 0, len(all))
	for _, c := range all {
		s, err := avro.Parse(c.Schema)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", c.File, err)
		}
		out = append(out, Contract{c, s})
	}
	return out, nil
}

// Earlier is a version that a contract had.
type Earlier struct {
	Name   string // how people call it: a version of the registry, a commit
	Schema *avro.Schema
	File   *gen.Contract // as its file had it; nil where only the schema is known
}

// State is how a contract stands to what it was.
type State string

// The states.
const (
	New       State = "new"
	Unchanged State = "unchanged"
	Changed   State = "changed"
	Gone      State = "gone" // it was there; nobody is kept from reading what was written
)

// Finding is what a comparison of one subject found.
type Finding struct {
	Subject string          `json:"subject"`
	File    string          `json:"file,omitempty"`
	State   State           `json:"state"`
	Against int             `json:"against"` // earlier versions compared with
	Level   compat.Level    `json:"level"`
	Breaks  []string        `json:"breaks"`  // why it may not follow them; none: it may
	Changes []compat.Change `json:"changes"` // since the latest of them
}

// Check compares a contract with its earlier versions, the oldest first.
func Check(c Contract, earlier []Earlier, level compat.Level) Finding {
	f := Finding{
		Subject: c.Subject, File: c.File, State: New, Against: len(earlier), Level: level,
		Breaks: []string{}, Changes: []compat.Change{},
	}
	if len(earlier) == 0 {
		return f
	}
	latest := earlier[len(earlier)-1]
	versions := make([]compat.Version, len(earlier))
	names := make(map[int]string, len(earlier))
	for i, e := range earlier {
		versions[i] = compat.Version{Number: i + 1, Schema: e.Schema}
		names[i+1] = e.Name
	}
	f.Changes = append(f.Changes, compat.Diff(latest.Schema, c.Avro)...)
	if latest.File != nil {
		f.attributes(latest.Name, *latest.File, c.Contract)
	}
	if f.State = Changed; same(latest.Schema, c.Avro) && len(f.Changes) == 0 {
		f.State = Unchanged
	}
	for _, r := range compat.Check(level, c.Avro, versions) {
		f.Breaks = append(f.Breaks, names[r.Version]+": "+r.String())
	}
	return f
}

// attributes compares what a registry never sees.
func (f *Finding) attributes(name string, was, is gen.Contract) {
	change := func(what, from, to string) {
		if from != to {
			f.Changes = append(f.Changes, compat.Change{Path: what, Kind: compat.Changed, Detail: fmt.Sprintf("%q is now %q", from, to)})
		}
	}
	change("(source)", was.Source, is.Source)
	change("(sequence)", was.Sequence, is.Sequence)
	change("(key)", was.Key, is.Key)
	if was.Key != is.Key {
		f.Breaks = append(f.Breaks, fmt.Sprintf("%s: the key was the field %q: events of one aggregate would go to other partitions, and their order is lost; to mend, keep the key, or give the fact a record of another name", name, was.Key))
	}
	if was.Sequence != "" && was.Sequence != is.Sequence {
		f.Breaks = append(f.Breaks, fmt.Sprintf("%s: the sequence was the field %q: consumers that look for gaps count by it; to mend, keep it", name, was.Sequence))
	}
}

func same(a, b *avro.Schema) bool { return bytes.Equal(a.Canonical(), b.Canonical()) }
