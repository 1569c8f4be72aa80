package contracts_test

import (
	"testing"

	"github.com/waybillhq/waybill/internal/avrogen/avrogentest" //nolint:depguard // the check of generated code is the generator's
	"github.com/waybillhq/waybill/saga/contracts"
)

func TestGeneratedCodeFollowsTheSchemas(t *testing.T) {
	avrogentest.CheckUpToDate(t, ".")
}

func TestEveryContractSurvivesTheWire(t *testing.T) {
	for _, c := range contracts.All() {
		t.Run(c.Type, func(t *testing.T) { avrogentest.CheckRoundTrip(t, c, contracts.New) })
	}
}

func TestEveryEnumHasADefault(t *testing.T) {
	for _, c := range contracts.All() {
		avrogentest.CheckEnumDefaults(t, c)
	}
}

// A saga's own events stand under its key, whatever the key looks like.
func TestTheKeyIsTheSagas(t *testing.T) {
	if k := (contracts.StepOverdue{Key: "trip-9"}).EventKey(); k != "trip-9" {
		t.Errorf("key %q", k)
	}
	if k := (contracts.StepSkipped{Key: "trip-9"}).EventKey(); k != "trip-9" {
		t.Errorf("key %q", k)
	}
}
