package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
)

// jsonFlag adds --json to a command that prints data.
func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON, for machines")
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// table prints aligned columns, the first row being the heading. No line ends in
// blanks, also where its last cells are empty.
func table(w io.Writer, rows [][]string) error {
	var aligned bytes.Buffer
	tw := tabwriter.NewWriter(&aligned, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(tw, strings.Join(row, "\t")) // into memory
	}
	_ = tw.Flush()
	for line := range bytes.Lines(aligned.Bytes()) {
		if _, err := w.Write(append(bytes.TrimRight(line, " \n"), '\n')); err != nil {
			return err
		}
	}
	return nil
}

// number prints what may be unknown. Unknown is never shown as zero.
func number(n *int64) string {
	if n == nil {
		return "unknown"
	}
	return strconv.FormatInt(*n, 10)
}

func size(bytes int64) string {
	const unit = 1024
	if bytes < unit {
		return strconv.FormatInt(bytes, 10) + " B"
	}
	v, i := float64(bytes), -1
	for v >= unit && i < 4 {
		v /= unit
		i++
	}
	return fmt.Sprintf("%.1f %ciB", v, "KMGTP"[i])
}

// ago is how long something is past, in whole seconds.
func ago(t time.Time) string {
	return duration(max(0, time.Since(t)).Round(time.Second)) + " ago"
}

func duration(d time.Duration) string {
	switch {
	case d < 0:
		return "for ever"
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d d", d/(24*time.Hour))
	case d >= time.Second:
		text := d.Round(time.Second).String()
		for _, unit := range []string{"m0s", "h0m"} { // 24h0m0s is 24h
			if strings.HasSuffix(text, unit) {
				text = text[:len(text)-len("0s")]
			}
		}
		return text
	}
	return d.Round(10 * time.Microsecond).String()
}
