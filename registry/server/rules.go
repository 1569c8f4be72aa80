package server

import (
	"cmp"
	"strings"

	"github.com/waybillhq/waybill/registry/compat"
)

// mode is what may be done with a subject.
type mode string

const (
	readWrite mode = "READWRITE"
	readOnly  mode = "READONLY"
	// override is Confluent's older name of a global READONLY.
	override mode = "READONLY_OVERRIDE"
	// importing takes schemas with ids and versions from elsewhere, and no
	// others.
	importing mode = "IMPORT"
	// forwarding is a registry that passes writes on to another. It can come
	// with a topic, and is then as importing is.
	forwarding mode = "FORWARD"
)

func parseMode(s string) (mode, bool) {
	m := mode(strings.ToUpper(s))
	switch m {
	case readWrite, readOnly, override, importing, forwarding:
		return m, true
	}
	return "", false
}

func (m mode) frozen() bool   { return m == readOnly || m == override }
func (m mode) takesIDs() bool { return m == importing || m == forwarding }

// rules are what was set for a subject, or for all.
type rules struct {
	config *configValue // nil if nothing is set
	mode   mode         // "" if nothing is set
}

// level is the one that was set, "" if none was.
func (r rules) level() compat.Level {
	if r.config == nil {
		return ""
	}
	level, _ := compat.ParseLevel(r.config.Level)
	return level
}

func (s *subject) own() rules {
	if s == nil {
		return rules{}
	}
	return s.rules
}

// levelOf is the level that holds for a subject, or with "" for those that
// have none.
func (st *state) levelOf(name string) compat.Level {
	return cmp.Or(st.subjects[name].own().level(), st.rules.level(), st.fallback)
}

func (st *state) modeOf(name string) mode {
	return cmp.Or(st.subjects[name].own().mode, st.rules.mode, readWrite)
}

// normalizes is whether schemas of a subject are to be kept in normal form.
func (st *state) normalizes(name string) bool {
	for _, r := range []rules{st.subjects[name].own(), st.rules} {
		if r.config != nil && r.config.Normalize != nil {
			return *r.config.Normalize
		}
	}
	return false
}

// writable refuses to change a subject, or with "" what holds for all, that is
// read-only.
func (st *state) writable(name string) error {
	if m := st.modeOf(name); m.frozen() {
		return notPermitted(name, "is in read-only mode; set mode %s to change it", readWrite)
	}
	return nil
}

func notPermitted(name, format string, args ...any) error {
	return refuse(codeNotPermitted, "Subject "+strings.ReplaceAll(name, "%", "%%")+" in context . "+format, args...)
}
