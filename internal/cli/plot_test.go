package cli

import (
	"strings"
	"testing"
)

func TestAPlotIsAsHighAsItsValues(t *testing.T) {
	got := strings.Split(strings.TrimRight(plot([]float64{0, 2, 4, 1}, 10, 2, "events"), "\n"), "\n")
	want := []string{
		"      4 events ┤  █ ",
		"             0 ┤ ██▄",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAColumnIsTheMostOfItsValues(t *testing.T) {
	values := make([]float64, 100)
	values[55] = 7
	columns := fit(values, 10)
	if len(columns) != 10 || columns[5] != 7 {
		t.Errorf("%v", columns)
	}
	if plot(nil, 10, 2, "") != "" || strings.Contains(plot([]float64{0, 0}, 5, 2, ""), "█") {
		t.Error("of nothing")
	}
}
