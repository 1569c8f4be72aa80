package server

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSubject bounds the bytes of a subject's name: a topic's name and a
// record's with its namespace fit.
const maxSubject = 1024

// checkSubject refuses a name that JSON, the topic's form, could not give back
// as it was, or that is no text.
func checkSubject(name string) error {
	if len(name) > maxSubject || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return refuse(codeInvalidSubject, "The subject's name is not valid: want UTF-8 without control characters, at most %d bytes", maxSubject)
	}
	return nil
}
