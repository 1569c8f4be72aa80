package doctor

import (
	"fmt"
	"strings"
	"time"
)

// size is a number of bytes for people, or that it is unknown.
func size(bytes *int64) string {
	if bytes == nil {
		return "an unknown amount"
	}
	const unit = 1024
	v, i := float64(*bytes), 0
	for v >= unit && i < 5 {
		v /= unit
		i++
	}
	if i == 0 {
		return fmt.Sprintf("%d B", *bytes)
	}
	return fmt.Sprintf("%.1f %ciB", v, " KMGTP"[i])
}

func or(v, def string) string {
	if v != "" {
		return v
	}
	return def
}

// literal is text as an SQL string.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func seconds(v float64) string {
	return time.Duration(v * float64(time.Second)).Round(time.Second).String()
}

// some joins at most three of a list.
func some(list []string) string {
	if more := len(list) - 3; more > 0 {
		return fmt.Sprintf("%s; and %d more", strings.Join(list[:3], "; "), more)
	}
	return strings.Join(list, "; ")
}
