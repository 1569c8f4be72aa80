package protobuf

import (
	"fmt"
	"strings"
)

// A small text may ask for much work: names that grow with every level of
// nesting, literals within literals. These bounds are far above what people
// write.
const (
	sizeLimit    = 8 << 20  // bytes of a schema and all it imports
	fileLimit    = 1000     // files imported, directly or not
	tokenLimit   = 250_000  // words and signs of a file
	lineLimit    = 64 << 10 // bytes of a line: to find a column the parser counts from its start
	bracketLimit = 100      // brackets within brackets
	wordLimit    = 255      // bytes of an identifier
	nameLimit    = 64 << 20 // bytes of all full names of a file, at most
)

// bounded looks at a text before it is parsed. It knows comments and strings
// as far as it must to leave out what stands in them.
func bounded(text string) error {
	if len(text) > sizeLimit {
		return fmt.Errorf("it is larger than %d bytes", sizeLimit)
	}
	for l := range strings.Lines(text) {
		if len(l) > lineLimit {
			return fmt.Errorf("a line is longer than %d bytes; break it", lineLimit)
		}
	}
	var depth, word, longest, tokens, names int
	for i := 0; i < len(text); i++ {
		c := text[i]
		if isWord(c) {
			if word++; word == 1 {
				tokens++
			}
			longest = max(longest, word)
			continue
		}
		word = 0
		if c > ' ' {
			tokens++
		}
		switch c {
		case '{', '[', '<', '(':
			depth++
		case '}', ']', '>', ')':
			depth--
		case ';': // what ends here has a name with one part for each level
			names += (max(depth, 0) + 1) * longest
		case '"', '\'', '/':
			i = skip(text, i)
		}
		if depth > bracketLimit {
			return fmt.Errorf("brackets stand more than %d deep", bracketLimit)
		}
	}
	switch {
	case longest > wordLimit:
		return fmt.Errorf("a name is longer than %d bytes", wordLimit)
	case tokens > tokenLimit:
		return fmt.Errorf("it has more than %d words and signs; split the file", tokenLimit)
	case names > nameLimit:
		return fmt.Errorf("its names are too long for their number; shorten them, or split the file")
	}
	return nil
}

func isWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// skip is the last byte of the string or the comment that begins at i, or i.
func skip(text string, i int) int {
	begin, j := text[i], i+1
	if begin == '/' {
		if j == len(text) || text[j] != '/' && text[j] != '*' {
			return i
		}
		block := text[j] == '*'
		for j++; j < len(text); j++ {
			if !block && text[j] == '\n' || block && text[j] == '/' && text[j-1] == '*' && j > i+2 {
				break
			}
		}
		return j
	}
	for ; j < len(text) && text[j] != begin && text[j] != '\n'; j++ {
		if text[j] == '\\' {
			j++
		}
	}
	return j
}
