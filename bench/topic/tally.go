package topic

import (
	"fmt"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/event"
)

// Tally counts what came out of a topic. It is for one goroutine.
type Tally struct {
	Seen       int64 // different events
	Reordered  int64 // first copies that stand behind a later event of their key
	Duplicates int64 // further copies, wherever they stand

	keys Keys
	seen [][]uint64 // of each writer, a bit for each of its events
	high []int64    // of each key, the highest sequence so far
}

// NewTally is for events spread over keys.
func NewTally(keys Keys) *Tally {
	return &Tally{keys: keys, seen: make([][]uint64, keys.Writers), high: make([]int64, keys.Writers*keys.PerWriter)}
}

// Saw counts a record in, in the order of its partition. It returns which of
// which writer's events it is. A record that is no writer's event is an error.
func (t *Tally) Saw(rec *kgo.Record) (writer int, j int64, err error) {
	sequence, err := sequenceOf(rec)
	if err != nil {
		return 0, 0, err
	}
	writer, j, ok := t.keys.back(rec.Key, sequence)
	if !ok {
		return 0, 0, fmt.Errorf("topic %s holds a record that nobody here wrote: key %.64q, sequence %d", rec.Topic, rec.Key, sequence)
	}
	if !t.first(writer, j) {
		t.Duplicates++
		return writer, j, nil
	}
	t.Seen++
	high := &t.high[writer*t.keys.PerWriter+int(j%int64(t.keys.PerWriter))]
	if sequence < *high {
		t.Reordered++
	} else {
		*high = sequence
	}
	return writer, j, nil
}

// first tells whether the event was not seen before.
func (t *Tally) first(writer int, j int64) bool {
	word, bit := j/64, uint64(1)<<(j%64)
	for int64(len(t.seen[writer])) <= word {
		t.seen[writer] = append(t.seen[writer], 0)
	}
	if t.seen[writer][word]&bit != 0 {
		return false
	}
	t.seen[writer][word] |= bit
	return true
}

func sequenceOf(rec *kgo.Record) (int64, error) {
	for _, h := range rec.Headers {
		if h.Key == event.HeaderSequence {
			return strconv.ParseInt(string(h.Value), 10, 64)
		}
	}
	return 0, fmt.Errorf("topic %s holds a record without %s", rec.Topic, event.HeaderSequence)
}
