package consumer

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
)

// committed is how far the broker was told that the group has come.
func (w *world) committed() (sum int64) {
	w.t.Helper()
	all, err := kadm.NewClient(w.producer).FetchOffsets(w.t.Context(), w.group)
	if err != nil {
		w.t.Fatal(err)
	}
	all.Each(func(o kadm.OffsetResponse) { sum += max(o.At, 0) })
	return sum
}

// An owner may die after it saved where it is and before it told the broker. The
// next one tells, though nothing new comes: lag would show what was handled.
func TestTheNextOwnerTellsTheBrokerWhatTheLastOneSaved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2)
	m := w.start(keep)
	w.move("a", "b", "c", "a")
	w.settled()
	w.until("the broker was told", func() bool { return w.committed() == 4 })
	m.end(t)
	_, err := kadm.NewClient(w.producer).DeleteOffsets(t.Context(), w.group, kadm.TopicsSet{w.contract.Topic: {0: {}, 1: {}}})
	if err != nil {
		t.Fatal(err)
	}
	if n := w.committed(); n != 0 {
		t.Fatalf("%d are still committed: this shows nothing", n)
	}
	w.start(keep)
	w.until("the broker is told again", func() bool { return w.committed() == 4 })
}
