package cli

import (
	"regexp"
	"strings"
)

// How the libraries tell of a value that cannot be read.
var (
	noNumber   = regexp.MustCompile(`strconv\.Parse(Int|Uint): parsing "[^"]*": invalid syntax`)
	noFraction = regexp.MustCompile(`strconv\.ParseFloat: parsing "[^"]*": invalid syntax`)
	noBool     = regexp.MustCompile(`strconv\.ParseBool: parsing "[^"]*": invalid syntax`)
	noDuration = regexp.MustCompile(`time: (invalid duration|missing unit in duration|unknown unit "[^"]*" in duration) "?[^"]*"?$`)
	tooLarge   = regexp.MustCompile(`strconv\.Parse\w+: parsing "[^"]*": value out of range`)
)

// flagText says what was wanted, in the words of whoever typed it.
func flagText(err error) string {
	text := err.Error()
	for _, c := range []struct {
		said *regexp.Regexp
		want string
	}{
		{noNumber, "want a whole number"},
		{noFraction, "want a number"},
		{noBool, "want true or false"},
		{noDuration, "want a duration with its unit, such as 30s or 24h"},
		{tooLarge, "it is too large"},
	} {
		text = c.said.ReplaceAllLiteralString(text, c.want)
	}
	return strings.TrimSpace(text)
}
