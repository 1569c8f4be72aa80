package consumer

import (
	"testing"

	"pgregory.net/rapid"
)

// The position is never beyond an unfinished record, and nothing is left
// behind once all are finished.
func TestPositionIsTheFinishedPrefix(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var tr tracker
		var open, all []*mark
		offset := int64(0)
		t.Repeat(map[string]func(*rapid.T){
			"arrive": func(t *rapid.T) {
				offset += rapid.Int64Range(1, 5).Draw(t, "gap")
				m := tr.add(offset, 7)
				open, all = append(open, m), append(all, m)
			},
			"finish": func(t *rapid.T) {
				if len(open) == 0 {
					t.Skip()
				}
				i := rapid.IntRange(0, len(open)-1).Draw(t, "which")
				tr.finish(open[i])
				open = append(open[:i], open[i+1:]...)
			},
			"": func(t *rapid.T) {
				want := int64(0)
				for _, m := range all {
					if !m.finished {
						break
					}
					want = m.offset + 1
				}
				if tr.next != want {
					t.Fatalf("next %d, want %d", tr.next, want)
				}
			},
		})
	})
}

func TestALogThatBeginsAgainMovesThePositionBack(t *testing.T) {
	var tr tracker
	tr.finish(tr.add(9, 1))
	a, b := tr.add(3, 2), tr.add(4, 2)
	tr.finish(b)
	if tr.next != 10 {
		t.Errorf("next %d before the first is finished", tr.next)
	}
	tr.finish(a)
	if tr.next != 5 {
		t.Errorf("next %d, want 5", tr.next)
	}
}
