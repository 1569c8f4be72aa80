package saga

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// heading names the columns.
var heading = line{mark: "#", after: "AFTER", waited: "WAITED", cells: [4]string{"SOURCE", "EVENT", "MEANS", "BY"}}

// drawLines aligns the columns: the first ones as wide as what they hold, those
// of names no wider than leaves room for the others. What is no event has the
// room of all four, on several lines if need be.
func drawLines(b *strings.Builder, lines []line) {
	lines = append([]line{heading}, lines...)
	var mark, after, waited int
	var cells [4]int
	for _, l := range lines {
		mark, after, waited = max(mark, count(l.mark)), max(after, count(l.after)), max(waited, count(l.waited))
		for i, c := range l.cells {
			cells[i] = max(cells[i], count(c))
		}
	}
	left := mark + 2 + after + 2 + waited + 2
	room := width - left
	names := room - 3*2 - cells[3]
	cells[0] = min(cells[0], max(6, names/4))
	cells[2] = min(cells[2], max(5, (names-cells[0])*3/5))
	cells[1] = min(cells[1], max(5, names-cells[0]-cells[2]))
	for _, l := range lines {
		head := fmt.Sprintf("%*s  %*s  %*s  ", mark, l.mark, after, l.after, waited, l.waited)
		if l.text == "" {
			row := head
			for i, c := range l.cells {
				c = cut(c, cells[i])
				row += c + strings.Repeat(" ", cells[i]-count(c)+2)
			}
			b.WriteString(strings.TrimRight(row, " ") + "\n")
			continue
		}
		for _, part := range wrap(l.text, room) {
			b.WriteString(head + part + "\n")
			head = strings.Repeat(" ", left)
		}
	}
}

func count(s string) int { return utf8.RuneCountInString(s) }

// wrap breaks s between words, or within one that is longer than n.
func wrap(s string, n int) (out []string) {
	now := ""
	for word := range strings.FieldsSeq(s) {
		for count(word) > n {
			if now != "" {
				out, now = append(out, now), ""
			}
			r := []rune(word)
			out, word = append(out, string(r[:n])), string(r[n:])
		}
		switch {
		case now == "":
			now = word
		case count(now)+1+count(word) <= n:
			now += " " + word
		default:
			out, now = append(out, now), word
		}
	}
	if now != "" {
		out = append(out, now)
	}
	return out
}
