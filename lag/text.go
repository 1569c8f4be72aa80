package lag

import (
	"strings"
	"unicode"
)

// printable keeps what a stranger sent from commanding a terminal, and from
// filling it. Limit is in characters.
func printable(s string, limit int) string {
	n := 0
	return strings.Map(func(r rune) rune {
		n++
		switch {
		case n > limit:
			return -1
		case n == limit:
			return '…'
		case unicode.IsControl(r) || r == unicode.ReplacementChar:
			return '?'
		}
		return r
	}, s)
}
