package couriers

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/contracts"
)

// Fix is where a courier's device was. What the device does not know is nil.
type Fix struct {
	Seq      int64 // counts the device's fixes; a lower one is older
	Lat, Lng float64
	Speed    *float32 // metres a second
	Heading  *float32 // degrees clockwise from north
	Accuracy *float32 // metres
	At       time.Time
}

const (
	// MaxFixes bounds a report of positions.
	MaxFixes = 100
	// maxAhead is how far a device's clock may be ahead, and maxAge how long one
	// that was out of reach may keep a position.
	maxAhead = 2 * time.Minute
	maxAge   = time.Hour
)

// FieldError says what is wrong with one field, by its path in the report.
type FieldError struct{ Field, Message string }

// Invalid refuses a report of positions, naming every field that is wrong.
type Invalid struct{ Fields []FieldError }

func (e *Invalid) Error() string {
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = f.Field + " " + f.Message
	}
	return "invalid positions: " + strings.Join(parts, "; ")
}

func (e *Invalid) add(at int, field, message string) {
	e.Fields = append(e.Fields, FieldError{fmt.Sprintf("positions[%d].%s", at, field), message})
}

// timely checks a report and leaves out what is too old or from the future. The
// rest of a report is good without it: a device that comes back sends all it
// has. Only where nothing is left the device must be told, as its clock is wrong.
func timely(fixes []Fix, now time.Time) ([]Fix, error) {
	var bad, late Invalid
	if len(fixes) < 1 || len(fixes) > MaxFixes {
		bad.Fields = append(bad.Fields, FieldError{"positions", fmt.Sprintf("must have between 1 and %d entries", MaxFixes)})
	}
	good := make([]Fix, 0, len(fixes))
	for i := range fixes {
		f := &fixes[i]
		f.check(&bad, i)
		switch {
		case f.At.After(now.Add(maxAhead)):
			late.add(i, "fix_time", "must not be more than 2 minutes ahead: set the device's clock")
		case f.At.Before(now.Add(-maxAge)):
			late.add(i, "fix_time", "must not be older than an hour")
		default:
			good = append(good, *f)
		}
	}
	switch {
	case len(bad.Fields) > 0:
		return nil, &bad
	case len(good) == 0:
		return nil, &late
	}
	return good, nil
}

func (f *Fix) check(bad *Invalid, i int) {
	if f.Seq < 0 {
		bad.add(i, "seq", "must not be negative")
	}
	within(bad, i, "lat", f.Lat, -90, 90)
	within(bad, i, "lng", f.Lng, -180, 180)
	optional := func(field string, v *float32, most float64) {
		if v != nil {
			within(bad, i, field, float64(*v), 0, most)
		}
	}
	optional("speed_mps", f.Speed, 150)
	optional("heading_deg", f.Heading, 360)
	optional("accuracy_m", f.Accuracy, 1e6)
}

func within(bad *Invalid, i int, field string, v, least, most float64) {
	if math.IsNaN(v) || v < least || v > most {
		bad.add(i, field, fmt.Sprintf("must be between %g and %g", least, most))
	}
}

// newest is the fix with the highest number.
func newest(fixes []Fix) Fix {
	best := fixes[0]
	for _, f := range fixes[1:] {
		if f.Seq > best.Seq {
			best = f
		}
	}
	return best
}

func (f *Fix) event(courier uuid.UUID, received time.Time, order *uuid.UUID) contracts.CourierLocationUpdated {
	return contracts.CourierLocationUpdated{
		CourierID: courier, Seq: f.Seq, Lat: f.Lat, Lng: f.Lng,
		SpeedMps: f.Speed, HeadingDeg: f.Heading, AccuracyM: f.Accuracy,
		FixTime: f.At.UTC(), ReceivedAt: received, ActiveOrderID: order,
	}
}
