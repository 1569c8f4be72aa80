package cdc

import (
	"strconv"
	"strings"
)

// avroName makes a name that Avro takes: letters, digits and _, no digit first.
func avroName(s string) string {
	clean := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '_':
			return c
		}
		return '_'
	}, s)
	if clean == "" || clean[0] >= '0' && clean[0] <= '9' {
		return "_" + clean
	}
	return clean
}

// names gives each column a field name of its own: two columns that differ only
// in what Avro does not take are numbered.
type names map[string]bool

func (n names) of(column string) string {
	base := avroName(column)
	name := base
	for i := 2; n[name]; i++ {
		name = base + "_" + strconv.Itoa(i)
	}
	n[name] = true
	return name
}
