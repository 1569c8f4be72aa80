package outbox_test

import (
	"errors"
	"testing"
	"time"

	"github.com/waybillhq/waybill/outbox"
)

func TestWhatIsDueInMoreThanAYearIsRefused(t *testing.T) {
	ob := outbox.New(nil, outbox.Config{})
	_, err := ob.At(time.Now().AddDate(2, 0, 0)).Add(t.Context(), nil, thing{contract: known, ID: "a", Kind: "ROUND"})
	var refusal *outbox.Refusal
	if !errors.As(err, &refusal) || !errors.Is(err, outbox.ErrTooFar) || refusal.Key != "a" {
		t.Errorf("got %v", err)
	}
}
