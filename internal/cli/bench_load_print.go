package cli

import (
	"fmt"
	"io"

	"github.com/waybillhq/waybill/bench/consume"
)

// loadWidth is the columns of the curves.
const loadWidth = 75

func printLoad(out io.Writer, r consume.LoadResult) error {
	var events, seconds, workers []float64
	for _, s := range r.Samples {
		events = append(events, drawn(s.Lag))
		age := 0.0
		if s.Seconds != nil {
			age = *s.Seconds
		}
		seconds, workers = append(seconds, age), append(workers, float64(s.Workers))
	}
	width := min(loadWidth, len(r.Samples))
	for _, p := range []string{
		plot(events, width, 6, "behind"), plot(seconds, width, 4, "s behind"), plot(workers, width, 4, "workers"),
		fmt.Sprintf("%15s└%s %.0f s\n%15s %s\n\n", "", axis(width), lastAt(r), "alert", alertLine(r, width)),
	} {
		if _, err := fmt.Fprint(out, p); err != nil {
			return err
		}
	}
	rows := [][]string{
		{"load", fmt.Sprintf("%d events", r.Events), fmt.Sprintf("%d/s for %.0f s, then %d/s; each waits %.0f ms", r.Produce, r.Burst, r.Calm, r.Handler)},
		{"lag", fmt.Sprintf("%d events at most", r.MaxLag), fmt.Sprintf("%.1f s behind at most, drained %s", r.MaxAge, atText(r.Drained))},
		{"alert", r.Rule, fmt.Sprintf("fired %s, over %s", atText(r.Fired), atText(r.Over))},
		{"workers", fmt.Sprintf("%d, %d at most, %d at the end", r.Least, r.Most, r.Last), byText(r)},
	}
	for _, m := range r.Marks {
		if m.Workers > 0 {
			rows = append(rows, []string{"", fmt.Sprintf("%d at %.1f s", m.Workers, m.At), m.Text})
		}
	}
	return table(out, append(rows,
		[]string{"lost", fmt.Sprint(r.Lost), fmt.Sprintf("reordered %d  duplicates %d", r.Reordered, r.Duplicates)},
		[]string{"took", fmt.Sprintf("%.0f s", r.Took), fmt.Sprintf("%d cores", r.Cores)},
	))
}

func byText(r consume.LoadResult) string {
	if r.ByHand {
		return "set by hand"
	}
	return "by the lag"
}

// drawn shows what is unknown as nothing.
func drawn(n *int64) float64 {
	if n == nil {
		return 0
	}
	return float64(*n)
}

func lastAt(r consume.LoadResult) float64 { return r.Samples[len(r.Samples)-1].At }

func atText(at *float64) string {
	if at == nil {
		return "never"
	}
	return fmt.Sprintf("at %.1f s", *at)
}

// alertLine marks the columns in which the alert fires.
func alertLine(r consume.LoadResult, width int) string {
	line := make([]rune, width)
	for i := range line {
		at, fires := float64(i)/float64(width)*lastAt(r), '·'
		if r.Fired != nil && at >= *r.Fired && (r.Over == nil || at < *r.Over) {
			fires = '!'
		}
		line[i] = fires
	}
	return string(line)
}
