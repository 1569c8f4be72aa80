package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

func (c relayComparison) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "relay\tevents/s\tCPU s\tevents/CPU s\tpeak MB\tp50 ms\tp99 ms\tlost\treordered\tduplicates\t\n")
	for _, p := range c.Peers {
		_, _ = fmt.Fprintf(w, "%s\t%.0f\t%s\t%s\t%s\t%.2f\t%.2f\t%d\t%d\t%d\t\n", p.Name, p.PerSecond, figure(p.CPU, "%.2f"),
			figure(p.PerCPUSecond, "%.0f"), figure(p.Peak, "%.0f"), p.P50, p.P99, p.Lost, p.Reordered, p.Duplicates)
	}
	for _, p := range c.Peers[1:] {
		_, _ = fmt.Fprintf(w, "waybill / %s\t%s\t\t%s\t\t\t\t\t\t\t\n", p.Name, figure(p.TimesFaster, "%.1f ×"), figure(p.TimesLess, "%.1f ×"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%d events, waits at %d/s, Postgres %s, %d cores\n", c.Events, c.Rate, c.Postgres, c.Cores)
	for _, p := range c.Peers {
		_, _ = fmt.Fprintf(out, "%s: %s\n", p.Name, p.Settings)
	}
	return err
}

// figure is v in a format, or that it is not known.
func figure(v *float64, format string) string {
	if v == nil {
		return "unknown"
	}
	return fmt.Sprintf(format, *v)
}
