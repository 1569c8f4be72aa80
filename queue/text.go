package queue

import "strings"

// cut is the beginning of a text that the database can keep: text without NUL,
// of at most n bytes.
func cut(s string, n int) string {
	if len(s) > n {
		s = s[:n]
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "?")
}
