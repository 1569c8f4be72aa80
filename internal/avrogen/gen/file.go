package gen

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// parseFile reads the text of a schema's file and says where it is not JSON.
func parseFile(text []byte) (*node, error) {
	switch {
	case bytes.HasPrefix(text, []byte{0xff, 0xfe}), bytes.HasPrefix(text, []byte{0xfe, 0xff}):
		return nil, errors.New("it is UTF-16; save it as UTF-8")
	case !utf8.Valid(text):
		return nil, errors.New("it is not UTF-8; save it as that")
	}
	// Editors on Windows begin a file with a byte order mark, which JSON has not.
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errors.New("it is empty; want one record or enum")
	}
	root, err := parseNode(text)
	var at *jsonError
	if errors.As(err, &at) {
		line, column := place(text, at.offset)
		return nil, fmt.Errorf("line %d, column %d: %w", line, column, err)
	}
	return root, err
}

// jsonError is a text that is not the JSON wanted.
type jsonError struct {
	offset int64 // of its file's text, past the character that is wrong
	what   string
}

func (e *jsonError) Error() string { return e.what }

// offsetOf is where JSON ends to be any.
func offsetOf(err error, text []byte) int64 {
	var at *json.SyntaxError
	if errors.As(err, &at) {
		return at.Offset
	}
	return int64(len(text))
}

// place is a line and a column, in characters, both from 1.
func place(text []byte, offset int64) (line, column int) {
	before := text[:max(0, min(offset-1, int64(len(text))))]
	start := bytes.LastIndexByte(before, '\n') + 1
	return bytes.Count(before, []byte("\n")) + 1, utf8.RuneCount(before[start:]) + 1
}

// fileName refuses names that cannot become one of a Go file: the compiler
// passes over those that begin with _ or a dot, and a line break would end the
// comment that names the schema, so that the rest of the name were code.
func fileName(name string) error {
	switch {
	case strings.HasPrefix(name, "_"), strings.HasPrefix(name, "."):
		return fmt.Errorf("%s: Go passes over files whose names begin with _ or a dot; rename it", name)
	case strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == utf8.RuneError }):
		return fmt.Errorf("%q: a file's name is of characters that can be printed; rename it", name)
	}
	return nil
}
