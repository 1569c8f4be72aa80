package consumer

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"strings"
)

// What differs between two failures of one cause.
var particular = []struct {
	form *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`"(?:[^"\\]|\\.)*"|'[^']*'|` + "`[^`]*`"), "…"},
	{regexp.MustCompile(`(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "#"},
	{regexp.MustCompile(`(?i)\b(?:0x)?[0-9a-f]*[0-9][0-9a-f]{7,}\b`), "#"},
	{regexp.MustCompile(`\b[[:alpha:]]*[_-]?[0-9][[:alnum:]]*\b`), "#"},
	{regexp.MustCompile(`#(?:[.:,/@_-]#)+`), "#"},
	{regexp.MustCompile(`\s+`), " "},
}

// maxCause bounds a cause's text, in bytes.
const maxCause = 300

// causeOf is an error's text without ids, numbers and quoted parts, so that
// failures of one cause are found together, and a short name for it.
func causeOf(text string) (cause, id string) {
	if len(text) > 4*maxCause {
		text = text[:4*maxCause]
	}
	cause = storable(text)
	for _, p := range particular {
		cause = p.form.ReplaceAllLiteralString(cause, p.as)
	}
	if len(cause) > maxCause {
		cause = strings.ToValidUTF8(cause[:maxCause], "")
	}
	cause = strings.TrimSpace(cause)
	sum := sha256.Sum256([]byte(cause))
	return cause, hex.EncodeToString(sum[:4])
}
