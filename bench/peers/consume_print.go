package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

func (c consumeComparison) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "consume\tevents/s\tCPU s/million\tPostgres CPU s/million\tpeak MB\tlost\treordered\tduplicates\tpause after kill -9, s\t\n")
	for _, p := range c.Peers {
		_, _ = fmt.Fprintf(w, "%s\t%.0f\t%s\t%s\t%s\t%d\t%d\t%d\t%.1f\t\n", p.Name, p.PerSecond, figure(p.CPU, "%.0f"), figure(p.Server, "%.0f"),
			figure(p.Peak, "%.0f"), p.Lost, p.Reorder, p.Twice, p.Killed.Pause)
	}
	for _, p := range c.Peers[1:] {
		_, _ = fmt.Fprintf(w, "waybill / %s\t%s\t%s\t%s\t\t\t\t\t\t\n", p.Name, figure(p.Faster, "%.1f ×"),
			figure(p.LessCPU, "1 / %.1f"), figure(p.LessServer, "1 / %.1f"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%d events, median of %d rounds, counts over all of them and one that is killed; Postgres %s, %d cores\n",
		c.Events, c.Rounds, c.Postgres, c.Cores)
	for _, p := range c.Peers {
		_, _ = fmt.Fprintf(out, "%s: %s\n", p.Name, p.Settings)
	}
	return err
}
