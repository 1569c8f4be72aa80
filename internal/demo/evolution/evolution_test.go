package evolution_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/bench/engine"
	"github.com/waybillhq/waybill/internal/avrogen/avrogentest"
	"github.com/waybillhq/waybill/internal/demo/evolution"
	"github.com/waybillhq/waybill/test/proc"
)

func TestTheScenarioGoesAsTold(t *testing.T) {
	var out bytes.Buffer
	if err := evolution.Run(t.Context(), engine.Config{Program: proc.Binary(t)}, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	for _, want := range []string{
		"old reads p3, 80 g, to Caruaru", "new reads p1, 300 g, to Olinda, note: none", "note: fragile",
		`check     version 1: at field "to"`, `registry  at field "weight_g"`, `start     at field "weight_g"`, "under FORWARD: accepted",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}

func TestGeneratedTypesAreUpToDate(t *testing.T) {
	avrogentest.CheckUpToDate(t, "v1")
	avrogentest.CheckUpToDate(t, "v2")
}
