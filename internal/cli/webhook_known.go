package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/waybillhq/waybill/webhook"
)

// warnUnmatched says which patterns match none of the types known here. They are
// taken all the same: who sends may be of a later version. But a slip of the pen
// would be an endpoint that is never called.
func warnUnmatched(w io.Writer, patterns, known []string) {
	var none []string
	for _, p := range patterns {
		if !slices.ContainsFunc(known, func(typ string) bool { return webhook.Matches(p, typ) }) {
			none = append(none, oneLine(p))
		}
	}
	if len(none) > 0 {
		_, _ = fmt.Fprintf(w, "matches no event type known here: %s; known are %s\n", strings.Join(none, ", "), strings.Join(known, ", "))
	}
}
