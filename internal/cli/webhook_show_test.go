package cli

import (
	"testing"
	"time"

	"github.com/waybillhq/waybill/webhook"
)

func TestNoDeliveryIsDueBeforeItsEndpointIsCalledAgain(t *testing.T) {
	at := func(minute int) *time.Time {
		m := time.Date(2026, 5, 1, 12, minute, 0, 0, time.UTC)
		return &m
	}
	for _, c := range []struct{ next, until, want *time.Time }{
		{nil, nil, nil},
		{nil, at(3), nil}, // it is over
		{at(1), nil, at(1)},
		{at(1), at(3), at(3)},
		{at(4), at(3), at(4)},
	} {
		got := webhookDelivery{NextAt: c.next}.attemptedAt(webhook.Endpoint{OpenUntil: c.until})
		if (got == nil) != (c.want == nil) || got != nil && !got.Equal(*c.want) {
			t.Errorf("due %v, left alone until %v: %v, want %v", c.next, c.until, got, c.want)
		}
	}
}
