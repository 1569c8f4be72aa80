package evolution_test

import (
	"testing"

	"github.com/waybillhq/waybill/internal/avrogen/avrogentest"
)

// The scenario itself is played by test/cli.
func TestGeneratedTypesAreUpToDate(t *testing.T) {
	avrogentest.CheckUpToDate(t, "v1")
	avrogentest.CheckUpToDate(t, "v2")
}
