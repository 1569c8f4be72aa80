package jsonschema

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"slices"
	"sync"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// stateLimit bounds a pattern that is matched: b{1000} is few letters and much
// memory.
const stateLimit = 500

// pattern is compared by its text, and compiled only where a name must match
// it. One that is too large, or of a dialect that Go does not read (ECMA's
// lookahead for one), matches no name.
type pattern struct {
	text  string
	match func() *regexp.Regexp
}

func (p *pattern) String() string { return p.text }

func (p *pattern) MatchString(s string) bool {
	re := p.match()
	return re != nil && re.MatchString(s)
}

func compilePattern(text string) (jsonschema.Regexp, error) {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil && hopeless(err) {
		return nil, err
	}
	return &pattern{text, sync.OnceValue(func() *regexp.Regexp {
		if err != nil || states(tree) > stateLimit {
			return nil
		}
		re, _ := regexp.Compile(text)
		return re
	})}, nil
}

// hopeless is whether no dialect takes a pattern with that fault.
func hopeless(err error) bool {
	var why *syntax.Error
	if !errors.As(err, &why) {
		return false
	}
	return slices.Contains([]syntax.ErrorCode{
		syntax.ErrMissingBracket, syntax.ErrMissingParen, syntax.ErrUnexpectedParen,
		syntax.ErrTrailingBackslash, syntax.ErrMissingRepeatArgument,
	}, why.Code)
}

// states is about how large a pattern becomes when its repetitions are written
// out.
func states(re *syntax.Regexp) int {
	n := 1 + len(re.Rune)
	for _, sub := range re.Sub {
		n += states(sub)
	}
	if re.Op == syntax.OpRepeat {
		n *= max(1, re.Min, re.Max)
	}
	return n
}
