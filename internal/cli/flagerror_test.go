package cli

import (
	"strings"
	"testing"
)

func TestAFlagThatCannotBeReadSaysWhatIsWanted(t *testing.T) {
	for line, say := range map[string]string{
		"outbox archive run --keep-days x":                    "want a whole number",
		"outbox archive run --keep-days 99999999999999999999": "too large",
		"incidents --since soon":                              "want a duration",
		"incidents --since 5":                                 "want a duration",
		"incidents --since 5parsecs":                          "want a duration",
		"topics --json=maybe":                                 "want true or false",
	} {
		args := strings.Fields(line)
		code, _, errOut := command(args...)
		if code != exitUsage || !strings.Contains(errOut, say) || strings.Contains(errOut, "strconv") || strings.Contains(errOut, "time: ") || !strings.Contains(errOut, "--help") {
			t.Errorf("%s: %d %s", line, code, errOut)
		}
	}
}
