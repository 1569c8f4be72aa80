package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/internal/app"
)

func TestAPatternThatMatchesNothingIsWarnedOf(t *testing.T) {
	for pattern, warned := range map[string]bool{
		"logistica.orders.>": false, "*.billing.*": false, "logistica.orders.OrderCreated": false,
		"orders.>": true, "logistica.orders": true, "logistica.orders.OrderInvented": true,
		"logistica.couriers.CourierLocationUpdated": true, // which is telemetry
	} {
		var b bytes.Buffer
		warnUnmatched(&b, []string{pattern, ">"}, app.WebhookTypes())
		if !warned && b.Len() > 0 || warned && !strings.Contains(b.String(), "known here: "+pattern+"; known are ") {
			t.Errorf("%s: %q", pattern, b.String())
		}
		if warned && !strings.Contains(b.String(), "logistica.orders.OrderCreated") {
			t.Errorf("%q", b.String())
		}
	}
}

// What the help names as an example is a type there is.
func TestTheHelpsPatternsMatch(t *testing.T) {
	code, out, errOut := webhooks(t.Context(), "add", "--help")
	if code != exitOK || !strings.Contains(out, "--types 'logistica.orders.>'") || strings.Contains(out, " orders.>") || strings.Contains(out, "'orders.>") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
}
