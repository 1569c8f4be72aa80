// Package topic holds what a topic carries against what was written: which
// events are missing, which stand out of their key's order, which came twice,
// and how long they took.
package topic

import (
	"bytes"
	"strconv"
)

// Keys spreads the events of some writers over keys. Each writer has keys of
// its own, as an application has whose transactions lock what they change: the
// order of a key is then the order in which its writer commits.
type Keys struct {
	Writers   int
	PerWriter int
}

// Of is key and sequence of a writer's j-th event, from 0. Writer w's keys are
// "w-0", "w-1" and so on, in turn; sequences of a key begin at 1.
func (k Keys) Of(writer int, j int64) (key string, sequence int64) {
	n := int64(k.PerWriter)
	return strconv.Itoa(writer) + "-" + strconv.FormatInt(j%n, 10), j/n + 1
}

// back is which event a record is.
func (k Keys) back(key []byte, sequence int64) (writer int, j int64, ok bool) {
	w, i, ok := bytes.Cut(key, []byte("-"))
	if !ok || sequence < 1 {
		return 0, 0, false
	}
	writer, werr := strconv.Atoi(string(w))
	at, aerr := strconv.Atoi(string(i))
	if werr != nil || aerr != nil || writer < 0 || writer >= k.Writers || at < 0 || at >= k.PerWriter {
		return 0, 0, false
	}
	return writer, (sequence-1)*int64(k.PerWriter) + int64(at), true
}

// Share is how many of total events are the writer's: all have as many, but
// the first ones one more where it does not come out even.
func (k Keys) Share(writer int, total int64) int64 {
	n := int64(k.Writers)
	share := total / n
	if int64(writer) < total%n {
		share++
	}
	return share
}
