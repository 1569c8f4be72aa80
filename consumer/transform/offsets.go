package transform

import (
	"github.com/twmb/franz-go/pkg/kmsg"
)

// rest is what partitions have left once a transaction's items are passed.
type rest map[place][]*item

// after is what is left behind items, which are the first of their partitions.
func (s *session) after(items []*item) rest {
	out := rest{}
	for at, all := range s.pending {
		out[at] = all
	}
	for _, it := range items {
		out[it.place()] = out[it.place()][1:]
	}
	return out
}

// adjust has the offsets of partitions committed up to what is left. The client
// would commit all that was polled.
func (r rest) adjust(req *kmsg.TxnOffsetCommitRequest) {
	for i := range req.Topics {
		t := &req.Topics[i]
		for j := range t.Partitions {
			p := &t.Partitions[j]
			if left := r[place{t.Topic, p.Partition}]; len(left) > 0 {
				p.Offset, p.LeaderEpoch = left[0].rec.Offset, left[0].rec.LeaderEpoch
			}
		}
	}
}

// pass forgets items that are committed.
func (s *session) pass(items []*item, left rest) {
	s.commits++
	s.fails = 0
	for _, it := range items {
		at := it.place()
		if h := s.holds[at]; h != nil && h.offset <= it.rec.Offset {
			delete(s.holds, at)
		}
	}
	for at, l := range left {
		if len(l) == 0 {
			delete(s.pending, at)
			continue
		}
		s.pending[at] = l
	}
}
