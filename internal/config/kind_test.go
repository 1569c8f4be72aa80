package config

import (
	"strings"
	"testing"
)

func TestAValueOfAnotherKindIsToldInTheFilesWords(t *testing.T) {
	alone(t)
	for text, want := range map[string]string{
		"kafka: 3":                                   "line 1: want a section, with its settings indented below it, got a number",
		"kafka: {brokers: {a: b}}":                   "line 1: want a list, as in [a, b], got a section",
		"outbox:\n  max_backlog: many":               "line 2: want a number, got a text",
		"outbox: {archive: 7}":                       "want true or false, got a number",
		"outbox: {keep_days: [1]}":                   "want a number, got a list",
		"lag: {every: soon}":                         "want a duration with its unit, as 30s, got a text",
		"registry: {password: [hunter2hunter2]}":     "want a text, got a list",
		"registry: hunter2`hunter2":                  "want a section, with its settings indented below it, got a text",
		"kaf ka: 3":                                  "there is no setting kaf ka here",
		"kafka: {broker: [a]}":                       "there is no setting broker here",
		"!mine 000":                                  "want a section, with its settings indented below it, got something else", // found by the fuzzer
		"alerts: {rules: 3}":                         "want a list",
		"scale: {groups: [a]}":                       "want a section",
		"kafka: 3\nregistry: 4\ndatabase_url: [a]\n": "line 3: want a text",
	} {
		_, err := read(t, text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want it to say %q", text, err, want)
			continue
		}
		for _, never := range []string{"struct", "!!", "config.", "int64", "hunter2"} {
			if strings.Contains(err.Error(), never) {
				t.Errorf("%q: it says %s: %v", text, never, err)
			}
		}
	}
}

func TestARegistrysUserHasAPassword(t *testing.T) {
	alone(t)
	for text, ok := range map[string]bool{
		"registry: {user: a}": false, "registry: {password: b}": false, "registry: {user: a, password: ''}": false,
		"registry: {user: a, password: b}": true, "registry: {bearer: c}": true, "registry: {}": true,
	} {
		c, err := read(t, text)
		if err == nil {
			err = c.Check()
		}
		if (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}
