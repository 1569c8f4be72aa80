package cli

import (
	"fmt"
	"math"
	"strings"
)

// plot draws values over equal steps as columns of blocks, height lines high,
// with the scale at the left. Where there are more values than columns, a
// column is the most of its values.
func plot(values []float64, width, height int, unit string) string {
	if len(values) == 0 {
		return ""
	}
	columns := fit(values, width)
	most := 0.0
	for _, v := range columns {
		most = math.Max(most, v)
	}
	if most == 0 {
		most = 1
	}
	blocks := []rune(" ▁▂▃▄▅▆▇█")
	var out strings.Builder
	for line := height; line >= 1; line-- {
		label := ""
		switch line {
		case height:
			label = fmt.Sprintf("%.0f %s", most, unit)
		case 1:
			label = "0"
		}
		fmt.Fprintf(&out, "%14s ┤", label)
		for _, v := range columns {
			eighths := int(math.Round(v/most*float64(height)*8)) - (line-1)*8
			out.WriteRune(blocks[min(max(eighths, 0), 8)])
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// fit makes at most width columns of values.
func fit(values []float64, width int) []float64 {
	if len(values) <= width {
		return values
	}
	columns := make([]float64, width)
	for i, v := range values {
		at := i * width / len(values)
		columns[at] = math.Max(columns[at], v)
	}
	return columns
}
