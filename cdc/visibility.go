package cdc

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// visibility is a state of the database (pg_current_snapshot): which
// transactions' work is in it. It decides between a row that a snapshot read
// and a change from the stream, and it alone can: a transaction is in the WAL,
// and so perhaps in the stream, a moment before others see it, so that a
// change that stands before a watermark may be missing from a row read after
// it.
type visibility struct {
	xmin, xmax uint64   // all below xmin have ended; none from xmax on had begun to write
	open       []uint64 // those between that had not ended, ascending
}

func parseVisibility(s string) (v visibility, err error) {
	parts := strings.Split(s, ":")
	if len(parts) != 3 {
		return v, fmt.Errorf("snapshot %q: want xmin:xmax:xids", s)
	}
	number := func(s string) (n uint64) {
		n, e := strconv.ParseUint(s, 10, 64)
		if e != nil {
			err = fmt.Errorf("snapshot %q: %w", s, e)
		}
		return n
	}
	v.xmin, v.xmax = number(parts[0]), number(parts[1])
	if parts[2] != "" {
		for x := range strings.SplitSeq(parts[2], ",") {
			v.open = append(v.open, number(x))
		}
	}
	slices.Sort(v.open)
	return v, err
}

// sees tells whether the work of a committed transaction is in v.
func (v visibility) sees(xid uint32) bool {
	// Transactions are numbered in 64 bits, of which the stream tells the lower
	// 32; all that can still be asked for lie within 2^31 of each other.
	x := v.xmax + uint64(int64(int32(xid-uint32(v.xmax))))
	if x < v.xmin {
		return true
	}
	if x >= v.xmax {
		return false
	}
	_, open := slices.BinarySearch(v.open, x)
	return !open
}
