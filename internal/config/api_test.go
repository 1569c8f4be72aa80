package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheAPIsSharesAreReadAndChecked(t *testing.T) {
	for text, want := range map[string]string{
		"api: {rate: 500, burst: 50, at_work: 16, at_work_per_caller: 8}": "",
		"api: {rate: -1}":                            "above 0",
		"api: {burst: 0.5}":                          "api.burst",
		"api: {max_in_flight: 8, max_per_caller: 9}": "max_per_caller",
		"api: {at_work: 8, at_work_per_caller: 9}":   "at_work_per_caller",
		"api: {rates: 1}":                            "no setting rates",
	} {
		path := filepath.Join(t.TempDir(), "waybill.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		c := Default()
		err := c.fromFile(path)
		if err == nil {
			err = c.Check()
		}
		if want == "" && (err != nil || c.API != API{Rate: 500, Burst: 50, AtWork: 16, AtWorkPerCaller: 8}) {
			t.Errorf("%s: %+v %v", text, c.API, err)
		}
		if want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
