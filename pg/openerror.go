package pg

import (
	"slices"
	"strings"
)

// openError tells each cause once. A server that is tried with TLS and without,
// or under several addresses, mostly fails in the same way each time.

type openError struct{ error }

func (e openError) Unwrap() error { return e.error }

func (e openError) Error() string {
	head, causes, many := strings.Cut(e.error.Error(), "\n")
	if !many {
		return head
	}
	var told []string
	for cause := range strings.SplitSeq(causes, "\n") {
		// The same address is named twice where it has no other name.
		if cause = strings.TrimSpace(cause); cause != "" && !slices.Contains(told, cause) {
			told = append(told, cause)
		}
	}
	return strings.TrimSuffix(head, ":") + ": " + strings.Join(told, "; ")
}
