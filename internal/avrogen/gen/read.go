package gen

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Contract is a schema that travels on a topic, as its file has it.
type Contract struct {
	File    string // its name, without the folder
	Subject string
	Topic   string
	Source  string // CloudEvents' source
	Type    string // full name of the record
	Key     string // the field that is the record's key
	// Sequence is the field that is the aggregate's version, "" if there is none.
	Sequence string
	Doc      string
	Schema   string // what is registered: standing alone, without our attributes
}

// ReadDir reads the schema files of dir, by name. It does not look into folders
// below.
func ReadDir(dir string) (map[string][]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list schemas: %w", err)
	}
	files := map[string][]byte{}
	for _, e := range entries {
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".avsc") {
			continue
		}
		path := filepath.Join(dir, e.Name())
		if at, err := os.Stat(path); err == nil && !at.Mode().IsRegular() {
			return nil, fmt.Errorf("read schema %s: it is no file", path) // nobody may be at a pipe's other end
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read schema: %w", err)
		}
		files[e.Name()] = text
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("no *.avsc in %s", dir)
	}
	return files, nil
}

// Contracts reads the contracts of a folder's files, by subject ascending. A
// file that names no topic is there for others to use and is no contract.
func Contracts(files map[string][]byte) ([]Contract, error) {
	sources, err := parseSources(files)
	if err != nil {
		return nil, err
	}
	m, err := newModel(sources)
	if err != nil {
		return nil, err
	}
	out := make([]Contract, 0, len(m.contracts))
	for _, c := range m.contracts {
		sequence := ""
		if c.sequence != nil {
			sequence = c.sequence.name
		}
		out = append(out, Contract{
			File: c.source.name, Subject: c.subject(), Topic: c.topic, Source: c.uri, Type: c.full,
			Key: c.key.name, Sequence: sequence, Doc: c.doc, Schema: c.schema,
		})
	}
	return out, nil
}
