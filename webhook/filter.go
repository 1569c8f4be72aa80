package webhook

import (
	"fmt"
	"slices"
	"strings"
)

// Bounds of a filter.
const (
	maxPatterns = 100
	maxPattern  = 200 // bytes
)

// checkTypes finds patterns that match nothing. Patterns are words between dots,
// where * stands for one word, and > at the end for one or more.
func checkTypes(patterns []string) error {
	if len(patterns) > maxPatterns {
		return fmt.Errorf("%w: %d event types, at most %d; use patterns, whose last word may be >", ErrInvalid, len(patterns), maxPatterns)
	}
	for _, p := range patterns {
		words := strings.Split(p, ".")
		for i, w := range words {
			if len(p) > maxPattern || w == "" || len(w) > 1 && strings.ContainsAny(w, "*>") || w == ">" && i < len(words)-1 || !plain(w) {
				return fmt.Errorf("%w event type %.220q: want words between dots, * for one word, > only at the end, %d bytes at most", ErrInvalid, p, maxPattern)
			}
		}
	}
	return nil
}

// plain text is what a column takes and a line shows.
func plain(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == '\ufffd' })
}

// wants tells whether a type is among patterns, or there are none.
func wants(patterns []string, typ string) bool {
	return len(patterns) == 0 || slices.ContainsFunc(patterns, func(p string) bool { return Matches(p, typ) })
}

// Matches tells whether a type is what a pattern of [Settings.Types] stands for.
func Matches(pattern, typ string) bool {
	for {
		p, morePattern, goesOn := strings.Cut(pattern, ".")
		word, more, has := strings.Cut(typ, ".")
		switch {
		case p == ">":
			return typ != ""
		case p != "*" && p != word, word == "":
			return false
		case !goesOn || !has:
			return goesOn == has
		}
		pattern, typ = morePattern, more
	}
}
