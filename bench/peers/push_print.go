package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

func (c pushComparison) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	_, _ = fmt.Fprintf(w, "push\tbytes\tRSS bytes\tgoroutines\topen s\tto one p50 ms\tp99 ms\tto all ms\tCPU s\tlost\tduplicates\t\n")
	for _, p := range c.Peers {
		_, _ = fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.2f\t%.1f\t%.2f\t%.2f\t%.0f\t%.2f\t%d\t%d\t\n", p.Name, p.Bytes, p.RSS, p.Goroutines,
			p.ConnectS, p.P50, p.P99, p.Broadcast, p.CPU, p.Lost, p.Twice)
	}
	for _, p := range c.Peers[1:] {
		_, _ = fmt.Fprintf(w, "%s / waybill\t%s\t\t\t\t\t%s\t%s\t\t\t\t\n", p.Name, figure(p.TimesBytes, "%.1f ×"),
			figure(p.TimesP99, "%.1f ×"), figure(p.TimesBroadcast, "%.1f ×"))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%d streams of server-sent events over plain HTTP/1; bytes, RSS and goroutines are each one's, idle; %d events/s, each to one; %d to all; median of %d rounds, counts over all; %d cores\n",
		c.Connections, c.Rate, c.Broadcasts, c.Rounds, c.Cores)
	for _, p := range c.Peers {
		_, _ = fmt.Fprintf(out, "%s: %s\n", p.Name, p.Settings)
	}
	return err
}
