package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	"github.com/waybillhq/waybill/lag"
)

// painter colours what goes to a terminal, and nothing elsewhere.
type painter struct{ colour, clear bool }

func paint(out io.Writer) painter {
	f, ok := out.(*os.File)
	tty := ok && term.IsTerminal(int(f.Fd()))
	return painter{colour: tty && os.Getenv("NO_COLOR") == "", clear: tty}
}

// state is the last cell of its row: the escapes would count as its width.
func (p painter) state(s lag.State) string {
	if !p.colour {
		return string(s)
	}
	code := "31" // red
	switch s {
	case lag.OK:
		code = "32" // green
	case lag.Warning, lag.Rewound, lag.Unknown:
		code = "33" // yellow
	case lag.Firing, lag.NoMembers, lag.Retention, lag.Stalled:
	}
	return "\x1b[" + code + "m" + string(s) + "\x1b[0m"
}

// drawLag shows each group in a line with its past, then the partitions of the
// groups that were asked for, or those that are not well.
func drawLag(out io.Writer, s *lag.Snapshot, p painter, asked bool) error {
	if p.clear {
		_, _ = fmt.Fprint(out, "\x1b[H\x1b[2J")
	}
	_, _ = fmt.Fprintf(out, "%s  %s\n\n", s.At.Local().Format(time.RFC3339), oneLine(s.Error))
	rows := [][]string{{"GROUP", "MEMBERS", "LAG", "TIME", "IN/s", "OUT/s", "DRAINS IN", "LAST MINUTES", "STATE"}}
	var shown []lag.Partition
	for i := range s.Groups {
		g := &s.Groups[i]
		members := "unknown"
		if g.Members != nil {
			members = fmt.Sprint(*g.Members)
		}
		rows = append(rows, []string{
			g.Name, members, number(g.Lag), behindText(g.Seconds, g.Exact && !g.Partial), perSecond(g.In), perSecond(g.Out),
			drainText(g.Lag, g.Drain, g.In, g.Out), spark(g.History, 40), p.state(g.State),
		})
		for _, l := range g.Partitions {
			if asked || l.State != lag.OK {
				shown = append(shown, l)
			}
		}
	}
	if err := table(out, rows); err != nil {
		return err
	}
	const most = 30 // a terminal's height; waybill lag lists all
	if len(shown) > most {
		shown = shown[:most]
	}
	if len(shown) > 0 {
		_, _ = fmt.Fprintln(out)
		if err := table(out, lagRows(shown, p)); err != nil {
			return err
		}
	}
	return notes(out, s, shown)
}

// spark draws a group's lag, the newest at the right and the highest as a full
// block. Each cell is the greatest of its time; what was unknown is a dot.
func spark(past []lag.Moment, cells int) string {
	const blocks = "▁▂▃▄▅▆▇█"
	each := max(1, (len(past)+cells-1)/cells)
	var values []float64
	highest := 0.0
	for end := len(past); end > 0; end -= each {
		v := math.NaN()
		for _, m := range past[max(0, end-each):end] {
			if m.Lag != nil && !(float64(*m.Lag) <= v) {
				v = float64(*m.Lag)
			}
		}
		highest = max(highest, zeroIfUnknown(v))
		values = append(values, v)
	}
	var b strings.Builder
	scale := []rune(blocks)
	for i := len(values) - 1; i >= 0; i-- {
		switch v := values[i]; {
		case math.IsNaN(v):
			b.WriteRune('·')
		case highest == 0:
			b.WriteRune(scale[0])
		default:
			b.WriteRune(scale[int(math.Ceil(v/highest*float64(len(scale)-1)))])
		}
	}
	return b.String()
}

func zeroIfUnknown(v float64) float64 {
	if math.IsNaN(v) {
		return 0
	}
	return v
}

// behindText is a time behind, ~ before one that is estimated.
func behindText(seconds *float64, exact bool) string {
	if seconds == nil {
		return "unknown"
	}
	behind, fine := time.Duration(*seconds*float64(time.Second)), time.Millisecond
	if behind >= time.Second {
		fine = time.Second
	}
	text := duration(behind.Round(fine))
	if !exact {
		text = "~" + text
	}
	return text
}

func perSecond(v *float64) string {
	switch {
	case v == nil:
		return "unknown"
	case *v > 0 && *v < 10:
		return fmt.Sprintf("%.1f", *v)
	}
	return fmt.Sprintf("%.0f", *v)
}

func drainText(behind *int64, drain, in, out *float64) string {
	switch {
	case behind != nil && *behind == 0:
		return "-"
	case drain != nil:
		return duration(time.Duration(min(*drain, 1e9) * float64(time.Second)).Round(time.Second))
	case behind == nil || in == nil || out == nil:
		return "unknown"
	}
	return "not draining"
}
