package cli

import (
	"strings"
	"testing"

	"github.com/waybillhq/waybill/test/proc"
)

func TestTheEvolutionScenarioGoesAsTold(t *testing.T) {
	t.Parallel()
	r := proc.Run(t, "demo", "evolution")
	if r.Code != 0 {
		t.Fatalf("exit code %d: %s\n%s", r.Code, r.Err, r.Out)
	}
	for _, want := range []string{
		"old reads p3, 80 g, to Caruaru", "new reads p1, 300 g, to Olinda, note: none", "note: fragile",
		`check     version 1: at field "to"`, `registry  at field "weight_g"`, `start     at field "weight_g"`, "under FORWARD: accepted",
	} {
		if !strings.Contains(r.Out, want) {
			t.Errorf("no %q in\n%s", want, r.Out)
		}
	}
}
