package daypart

import (
	"fmt"
	"time"
)

// day is one UTC day.
type day struct{ start time.Time }

func dayOf(t time.Time) day { return day{t.UTC().Truncate(24 * time.Hour)} }

func (d day) next() day { return day{d.start.AddDate(0, 0, 1)} }

func (d day) name(t Table) string { return t.Name + "_" + d.start.Format("20060102") }

// floor is the smallest UUIDv7 of the day, as text: 48 bits of milliseconds,
// then zeroes. It is below every id of the day whatever its version bits.
func (d day) floor() string {
	ms := d.start.UnixMilli()
	return fmt.Sprintf("%08x-%04x-0000-0000-000000000000", ms>>16, ms&0xffff)
}
