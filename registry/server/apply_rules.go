package server

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/registry/compat"
)

// takeRules takes in a config or a mode.
func (st *state) takeRules(at place, r *kgo.Record, mark stamp, stamped bool) bool {
	next, ok := readRules(at.kind, r.Value)
	if !ok {
		return true // beyond us
	}
	to := &st.rules
	if at.subject != "" {
		s := st.subject(at.subject)
		if stamped && s.touched.missed(mark) {
			return false
		}
		s.touched = claim{r.Offset, mark.token}
		to = &s.rules
	} else {
		// Ids from elsewhere may come only where there are no schemas yet.
		if stamped && next.mode.takesIDs() && st.written.missed(mark) {
			return false
		}
		st.ruled = claim{r.Offset, mark.token}
	}
	if at.kind == keyConfig {
		to.config = next.config
	} else {
		to.mode = next.mode
	}
	st.spell(at, r)
	return true
}

func readRules(kind string, value []byte) (rules, bool) {
	if len(value) == 0 {
		return rules{}, true
	}
	if kind == keyMode {
		var in modeValue
		if json.Unmarshal(value, &in) != nil {
			return rules{}, false
		}
		m, ok := parseMode(string(in.Mode))
		return rules{mode: m}, ok
	}
	var in configValue
	if json.Unmarshal(value, &in) != nil {
		return rules{}, false
	}
	if level, ok := compat.ParseLevel(in.Level); ok {
		in.Level = string(level)
	} else {
		in.Level = ""
	}
	in.Subject = "" // the key has it
	return rules{config: &in}, true
}

// spell remembers spellings of a key that are not ours. Where the topic is
// compacted they must all be deleted, or one left over would rise again.
func (st *state) spell(at place, r *kgo.Record) {
	ours := ruleKey(at.kind, at.subject)
	if bytes.Equal(ours, r.Key) {
		return
	}
	others := st.spelled[string(ours)]
	if !slices.ContainsFunc(others, func(k []byte) bool { return bytes.Equal(k, r.Key) }) {
		st.spelled[string(ours)] = append(slices.Clone(others), r.Key)
	}
}

func (r rules) value(kind, subject string) []byte {
	switch {
	case kind == keyMode && r.mode != "":
		return encode(modeValue{subject, r.mode})
	case kind == keyConfig && r.config != nil:
		out := *r.config
		out.Subject = subject
		return encode(out)
	}
	return nil
}
