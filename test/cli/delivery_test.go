package cli

import (
	"strings"
	"testing"

	"github.com/waybillhq/waybill/test/proc"
)

func TestTheSagaScenarioGoesAsTold(t *testing.T) {
	t.Parallel()
	plays(t, []string{"saga"}, "round 1, completed", "round 1, compensated", "CourierNotificationFailed", "round 3, compensated", "VOIDED, VOIDED, VOIDED", "as it must be")
}

func TestTheOutageScenarioGoesAsTold(t *testing.T) {
	t.Parallel()
	plays(t, []string{"outage", "--rate", "5", "--away", "2s"}, "kill -9", "refused 0", "30 fees stand, 30 reservations are confirmed, 0 were released", "as it must be")
}

func plays(t *testing.T, scenario []string, say ...string) {
	t.Helper()
	r := proc.Run(t, append([]string{"demo"}, scenario...)...)
	if r.Code != 0 {
		t.Fatalf("exit code %d: %s\n%s", r.Code, r.Err, r.Out)
	}
	for _, want := range say {
		if !strings.Contains(r.Out, want) {
			t.Errorf("no %q in\n%s", want, r.Out)
		}
	}
}
