package producer

import (
	"bytes"
	"hash/crc32"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
	"pgregory.net/rapid"
)

// Whatever a batch is cut into, the halves are batches a broker can read and
// hold the records they held.
func TestHalvesOfABatchAreBatches(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(2, 300).Draw(t, "records")
		b := new(Batch[int])
		var want []Record
		for i := range n {
			r := Record{
				Key:   rapid.SliceOfN(rapid.Byte(), 0, 20).Draw(t, "key"),
				Value: rapid.SliceOfN(rapid.Byte(), 0, 200).Draw(t, "value"),
			}
			if rapid.Bool().Draw(t, "headers") {
				r.Headers = []Header{{Key: "h", Value: r.Key}}
			}
			want = append(want, r)
			b.add(&r, i, bodySize(&r, i), i)
		}
		batches := []*Batch[int]{b}
		for range rapid.IntRange(0, 6).Draw(t, "cuts") {
			i := rapid.IntRange(0, len(batches)-1).Draw(t, "which")
			if len(batches[i].Tags) < 2 {
				continue
			}
			next := new(Batch[int])
			batches[i].split(next)
			batches = append(batches[:i+1], append([]*Batch[int]{next}, batches[i+1:]...)...)
		}
		at := 0
		for _, b := range batches {
			b.seal(false)
			at = check(t, b, want, at)
		}
		if at != n {
			t.Fatalf("%d of %d records", at, n)
		}
	})
}

// check reads b as a broker does.
func check(t *rapid.T, b *Batch[int], want []Record, at int) int {
	var rb kmsg.RecordBatch
	if err := rb.ReadFrom(b.buf); err != nil {
		t.Fatal(err)
	}
	if int(rb.Length) != len(b.buf)-12 || rb.Magic != 2 || int(rb.NumRecords) != len(b.Tags) || rb.LastOffsetDelta != rb.NumRecords-1 {
		t.Fatalf("header %+v", rb)
	}
	if uint32(rb.CRC) != crc32.Checksum(b.buf[21:], castagnoli) {
		t.Fatal("checksum")
	}
	rest := rb.Records
	for i := range b.Tags {
		size, n := kbinVarint(rest)
		var r kmsg.Record
		if err := r.ReadFrom(rest[:n+size]); err != nil {
			t.Fatalf("record %d: %v", i, err)
		}
		rest = rest[n+size:]
		w := want[at]
		if b.Tags[i] != at || int(r.OffsetDelta) != i || !bytes.Equal(r.Key, w.Key) || !bytes.Equal(r.Value, w.Value) || len(r.Headers) != len(w.Headers) {
			t.Fatalf("record %d: %+v, want %+v", i, r, w)
		}
		at++
	}
	if len(rest) > 0 {
		t.Fatalf("%d bytes left", len(rest))
	}
	return at
}

func kbinVarint(b []byte) (v, n int) {
	var u uint64
	for i, c := range b {
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return int(u>>1) ^ -int(u&1), i + 1
		}
	}
	return 0, 0
}
