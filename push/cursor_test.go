package push

import (
	"reflect"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"pgregory.net/rapid"
)

func testLayout(t testing.TB, partitions ...int) *layout {
	t.Helper()
	topics := kadm.TopicDetails{}
	for i, n := range partitions {
		name := string(rune('a' + i))
		d := kadm.TopicDetail{Topic: name, ID: kadm.TopicID{byte(i + 1)}, Partitions: kadm.PartitionDetails{}}
		for p := range n {
			d.Partitions[int32(p)] = kadm.PartitionDetail{Topic: name, Partition: int32(p)}
		}
		topics[name] = d
	}
	l, err := newLayout(topics, nil)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func testSealer(t testing.TB) *sealer {
	t.Helper()
	s, err := newSealer([32]byte{7})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func anyCursor(l *layout) *rapid.Generator[*cursor] {
	return rapid.Custom(func(t *rapid.T) *cursor {
		c := &cursor{next: make([]int64, l.slots), index: rapid.Uint64().Draw(t, "index")}
		copy(c.epoch[:], rapid.SliceOfN(rapid.Byte(), 8, 8).Draw(t, "epoch"))
		for i := range c.next {
			c.next[i] = rapid.Int64Min(0).Draw(t, "next")
		}
		c.part = rapid.IntRange(0, 5).Draw(t, "part")
		for slot := range l.slots {
			if rapid.Bool().Draw(t, "inside") {
				c.inside = append(c.inside, inside{slot, rapid.IntRange(1, 5).Draw(t, "read")})
			}
		}
		return c
	})
}

func TestSealedCursorOpensToItself(t *testing.T) {
	l, s := testLayout(t, 3, 1, 4), testSealer(t)
	rapid.Check(t, func(t *rapid.T) {
		c := anyCursor(l).Draw(t, "cursor")
		got, err := s.open(string(s.seal(nil, l, c)), l)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("got %+v, %v, want %+v", got, err, c)
		}
	})
}

func TestCursorOpensAfterPartitionsWereAdded(t *testing.T) {
	s, before, after := testSealer(t), testLayout(t, 2, 2), testLayout(t, 3, 2)
	c := &cursor{next: []int64{1, 2, 3, 4}, inside: []inside{{3, 2}}}
	got, err := s.open(string(s.seal(nil, before, c)), after)
	want := &cursor{next: []int64{1, 2, 0, 3, 4}, inside: []inside{{4, 2}}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("got %+v, %v, want %+v", got, err, want)
	}
	if _, err := s.open(string(s.seal(nil, after, want)), before); err == nil {
		t.Fatal("a cursor of more partitions than there are was taken")
	}
}

func TestCursorOfOtherTopicsDoesNotOpen(t *testing.T) {
	s, l := testSealer(t), testLayout(t, 2)
	c := &cursor{next: []int64{1, 2}}
	if _, err := s.open(string(s.seal(nil, l, c)), testLayout(t, 2, 1)); err == nil {
		t.Fatal("a cursor of other topics was taken")
	}
}

func TestLengthOfACursorDoesNotFollowTheLog(t *testing.T) {
	s, l := testSealer(t), testLayout(t, 2)
	young := len(s.seal(nil, l, &cursor{next: []int64{0, 0}}))
	old := len(s.seal(nil, l, &cursor{next: []int64{1 << 20, 1 << 20}, index: 1 << 14}))
	if young != old {
		t.Fatalf("%d bytes at the log's beginning, %d later", young, old)
	}
}

func FuzzReadCursor(f *testing.F) {
	l := testLayout(f, 2, 1)
	f.Add(appendCursor(nil, l, &cursor{next: []int64{1, 2, 3}, part: 1, inside: []inside{{2, 1}}}))
	f.Add(append([]byte{cursorVersion}, l.hash[:]...))
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := readCursor(b, l)
		if err != nil {
			return
		}
		again, err := readCursor(appendCursor(nil, l, c), l)
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Fatalf("%+v read again is %+v, %v", c, again, err)
		}
	})
}

func FuzzOpenCursor(f *testing.F) {
	l, s := testLayout(f, 1), testSealer(f)
	f.Add("")
	f.Add("AAAA")
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := s.open(text, l); err == nil {
			t.Fatalf("%q was taken for a cursor", text)
		}
	})
}

func TestCursorStaysInsideOfARecordWhileOthersAreRead(t *testing.T) {
	c := &cursor{next: []int64{5, 5}, inside: []inside{{0, 1}}}
	c.advance(&frame{slot: 1, offset: 5, part: 0})
	if !c.seen(&frame{slot: 0, offset: 5, part: 0}) || c.seen(&frame{slot: 0, offset: 5, part: 1}) {
		t.Errorf("slot 0 after a part of slot 1: %+v", c)
	}
	if !c.seen(&frame{slot: 1, offset: 5, part: 0}) || c.seen(&frame{slot: 1, offset: 5, part: 1}) {
		t.Errorf("slot 1: %+v", c)
	}
	c.advance(&frame{slot: 0, offset: 5, part: 1, last: true})
	c.advance(&frame{slot: 1, offset: 5, part: 1, last: true})
	if want := (&cursor{next: []int64{6, 6}}); !reflect.DeepEqual(c.next, want.next) || len(c.inside) != 0 {
		t.Errorf("after both records: %+v", c)
	}
}

// Whoever sees that the log stood still between two heartbeats or two
// connections sees when others receive something.
func TestCursorsOfOnePlaceCannotBeToldFromThoseOfTwo(t *testing.T) {
	s, l := testSealer(t), testLayout(t, 2)
	c := &cursor{next: []int64{5, 6}, index: 9}
	seen := map[string]bool{}
	for range 100 {
		text := string(s.seal(nil, l, c))
		if seen[text] {
			t.Fatal("the same place gave the same text again")
		}
		seen[text] = true
		for known := range seen { // nor may a part of it repeat
			if known != text && (known[:16] == text[:16] || known[len(known)-16:] == text[len(text)-16:]) {
				t.Fatalf("%s and %s share a part", known, text)
			}
		}
	}
}
