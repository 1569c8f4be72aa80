package queue

import (
	"errors"
	"testing"
)

// FuzzReceipt claims that a receipt is one that Receive could have given, or
// invalid.
func FuzzReceipt(f *testing.F) {
	f.Add(handle{token: -1}.String())
	f.Add("AAAA")
	f.Add("")
	f.Fuzz(func(t *testing.T, text string) {
		h, err := parseReceipt(text)
		if err != nil {
			if !errors.Is(err, ErrInvalid) {
				t.Error(err)
			}
			return
		}
		if again, err := parseReceipt(h.String()); err != nil || again != h {
			t.Errorf("%q: %v, then %v, %v", text, h, again, err)
		}
	})
}
