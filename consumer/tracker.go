package consumer

// tracker knows how far a partition is finished without a gap, however out of
// order its records finish. Records are taken in the order they arrive, not by
// offset: offsets may have holes, and start over when a log was cut back.
type tracker struct {
	open  []*mark
	next  int64 // offset after the last record of the finished prefix
	epoch int32 // leader epoch of that record
}

// mark is one record's place in the order of arrival.
type mark struct {
	offset   int64
	epoch    int32
	finished bool
}

func (t *tracker) add(offset int64, epoch int32) *mark {
	m := &mark{offset: offset, epoch: epoch}
	t.open = append(t.open, m)
	return m
}

func (t *tracker) finish(m *mark) {
	m.finished = true
	for len(t.open) > 0 && t.open[0].finished {
		t.next, t.epoch = t.open[0].offset+1, t.open[0].epoch
		t.open[0] = nil
		t.open = t.open[1:]
	}
}
