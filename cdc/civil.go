package cdc

import (
	"bytes"
	"math"
)

// Infinite dates and times keep Postgres' own way of writing them down: the
// largest and smallest number of their Avro type. No other value of Postgres
// reaches those.
const (
	dateInfinity      = math.MaxInt32
	dateMinusInfinity = math.MinInt32
	timeInfinity      = math.MaxInt64
	timeMinusInfinity = math.MinInt64
	microsPerSecond   = 1_000_000
	secondsPerDay     = 86_400
	microsPerDay      = secondsPerDay * microsPerSecond
)

// parseDate reads a date in ISO style as days since 1970-01-01.
func parseDate(text []byte) (int32, bool) {
	switch string(text) {
	case "infinity":
		return dateInfinity, true
	case "-infinity":
		return dateMinusInfinity, true
	}
	c := clock{b: text}
	c.era()
	days := c.date()
	if !c.done() || days >= math.MaxInt32 || days <= math.MinInt32 {
		return 0, false
	}
	return int32(days), true
}

// parseTime reads a time of day as microseconds since midnight; 24:00:00 is
// one.
func parseTime(text []byte) (int64, bool) {
	c := clock{b: text}
	n := c.time()
	return n, c.done()
}

// parseTimestamp reads a timestamp, with or without an offset, as microseconds
// since 1970. Postgres' years go on to 294276, which in microseconds since 1970
// is some thirty years too far: those become infinity.
func parseTimestamp(text []byte) (int64, bool) {
	switch string(text) {
	case "infinity":
		return timeInfinity, true
	case "-infinity":
		return timeMinusInfinity, true
	}
	c := clock{b: text}
	c.era()
	days := c.date()
	c.expect(' ')
	micros := c.time() - c.offset()*microsPerSecond
	const most = math.MaxInt64/microsPerDay - 1
	switch {
	case !c.done() || days < -most:
		return 0, false
	case days > most:
		return timeInfinity, true
	}
	return days*microsPerDay + micros, true
}

// clock reads dates and times off a text. What does not fit makes it bad, for
// good.
type clock struct {
	b   []byte
	bc  bool
	bad bool
}

func (c *clock) done() bool { return !c.bad && len(c.b) == 0 }

// era takes the BC off the end.
func (c *clock) era() {
	if rest, ok := bytes.CutSuffix(c.b, []byte(" BC")); ok {
		c.b, c.bc = rest, true
	}
}

func (c *clock) expect(sign byte) {
	if len(c.b) == 0 || c.b[0] != sign {
		c.bad = true
		return
	}
	c.b = c.b[1:]
}

func (c *clock) at(sign byte) bool { return len(c.b) > 0 && c.b[0] == sign }

// number reads from least to most digits.
func (c *clock) number(least, most int) int64 {
	n, i := int64(0), 0
	for ; i < len(c.b) && i < most && c.b[i] >= '0' && c.b[i] <= '9'; i++ {
		n = n*10 + int64(c.b[i]-'0')
	}
	if i < least {
		c.bad = true
		return 0
	}
	c.b = c.b[i:]
	return n
}

// date gives days since 1970.
func (c *clock) date() int64 {
	year := c.number(4, 7)
	c.expect('-')
	month := c.number(2, 2)
	c.expect('-')
	day := c.number(2, 2)
	if c.bad || month < 1 || month > 12 || day < 1 || day > 31 {
		c.bad = true
		return 0
	}
	if c.bc {
		year = 1 - year // there is no year zero
	}
	return daysOf(year, month, day)
}

// daysOf counts the days from 1970-01-01 in the Gregorian calendar, also
// before its time, as Postgres does. It lets years begin in March, so that the
// leap day ends them (Hinnant, chrono-Compatible Low-Level Date Algorithms).
func daysOf(year, month, day int64) int64 {
	if month <= 2 {
		year--
	}
	era := floorDiv(year, 400)
	yearOfEra := year - era*400
	dayOfYear := (153*((month+9)%12)+2)/5 + day - 1
	dayOfEra := yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear
	return era*146_097 + dayOfEra - 719_468
}

func floorDiv(a, b int64) int64 {
	if a < 0 {
		return (a - b + 1) / b
	}
	return a / b
}

// time gives microseconds since midnight.
func (c *clock) time() int64 {
	hour := c.number(2, 2)
	c.expect(':')
	minute := c.number(2, 2)
	c.expect(':')
	second := c.number(2, 2)
	if hour > 24 || minute > 59 || second > 60 {
		c.bad = true
	}
	micros := (hour*3600 + minute*60 + second) * microsPerSecond
	if c.at('.') {
		c.expect('.')
		digits := len(c.b)
		fraction := c.number(1, 6)
		for digits -= len(c.b); digits < 6; digits++ {
			fraction *= 10
		}
		micros += fraction
	}
	return micros
}

// offset gives the seconds east of Greenwich, 0 where none is written.
func (c *clock) offset() int64 {
	var sign int64
	switch {
	case c.at('+'):
		sign = 1
	case c.at('-'):
		sign = -1
	default:
		return 0
	}
	c.b = c.b[1:]
	seconds := c.number(2, 2) * 3600
	for _, unit := range []int64{60, 1} {
		if c.at(':') {
			c.expect(':')
			seconds += c.number(2, 2) * unit
		}
	}
	return sign * seconds
}
