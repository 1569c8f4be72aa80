package consumer

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// FuzzCause claims that whatever a handler's error says becomes a bounded text
// that Postgres stores, under a short name.
func FuzzCause(f *testing.F) {
	for _, text := range []string{"no account 7", "pq: \x00 \xff", `key "a\"b" (0190163d-8694-739b-aea5-966c26f8ad90)`, strings.Repeat("é1 ", 900), "'"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		cause, id := causeOf(text)
		if !utf8.ValidString(cause) || strings.Contains(cause, "\x00") || len(cause) > maxCause || len(id) != 8 {
			t.Errorf("%q: %q %q", text, cause, id)
		}
	})
}
