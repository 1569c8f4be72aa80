package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

func (c queueComparison) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "queue\tmessages/s\tCPU s/million\tPostgres CPU s/million\t\tlost\tduplicates\t\n")
	for _, step := range []struct {
		name string
		of   func(queueResult) phaseResult
	}{
		{"sent", func(r queueResult) phaseResult { return r.Send }},
		{"worked on", func(r queueResult) phaseResult { return r.Work }},
		{"worked on, with an effect once", func(r queueResult) phaseResult { return r.Once }},
	} {
		for i, p := range c.Peers {
			s, waybillOver := step.of(p), ""
			if i > 0 {
				waybillOver = figure(s.Faster, "waybill %.2f ×")
			}
			_, _ = fmt.Fprintf(w, "%s, %s\t%.0f\t%s\t%s\t%s\t%d\t%d\t\n", p.Name, step.name, s.PerSecond, figure(s.CPU, "%.0f"), figure(s.Server, "%.0f"),
				waybillOver, p.Lost, p.Twice)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%d messages, a fifth as many with an effect, %d at a time, %d senders and workers; median of %d rounds, counts over all; Postgres %s, %d cores\n",
		c.Messages, c.Batch, c.Workers, c.Rounds, c.Postgres, c.Cores)
	for _, p := range c.Peers {
		_, _ = fmt.Fprintf(out, "%s: %s\n", p.Name, p.Settings)
	}
	return err
}
