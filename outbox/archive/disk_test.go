package archive_test

import (
	"errors"
	"io"
	"os"
	"runtime"
	"syscall"
	"testing"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/outbox/archive"
)

// quota is a disk with room for left bytes.
type quota struct {
	io.Writer
	left int
}

func (q *quota) Write(p []byte) (int, error) {
	if q.left -= len(p); q.left < 0 {
		n, _ := q.Writer.Write(p[:len(p)+q.left]) // as far as it goes
		return n, syscall.ENOSPC
	}
	return q.Writer.Write(p)
}

func TestAFullDiskLeavesNothingBehind(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 2000, 500)
	whole := w.write(archive.Options{}).File
	must(t, os.Remove(whole.Path))
	for _, room := range []int{0, 1, 500, 3000, int(whole.Bytes) / 2, int(whole.Bytes) - 1} {
		opts := archive.Options{}.OnDisk(func(out io.Writer) io.Writer { return &quota{out, room} })
		_, err := archive.Write(t.Context(), w.db, source, w.dir, opts)
		if !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("room for %d bytes: %v", room, err)
		}
		if names := w.names(); len(names) != 0 {
			t.Errorf("room for %d bytes: %v left", room, names)
		}
	}
	w.write(archive.Options{}) // with room again
	w.hasAll()
}

// rot is a disk that keeps one byte wrong.
type rot struct {
	io.Writer
	at, seen int
}

func (r *rot) Write(p []byte) (int, error) {
	out := append([]byte{}, p...)
	if i := r.at - r.seen; i >= 0 && i < len(p) {
		out[i] ^= 0x10
	}
	r.seen += len(p)
	return r.Writer.Write(out)
}

func TestABadDiskIsFoundBeforeTheFileHasItsName(t *testing.T) {
	w := newWorld(t)
	w.fill(0, 2000, 500)
	whole := w.write(archive.Options{}).File
	must(t, os.Remove(whole.Path))
	for at := 0; at < int(whole.Bytes); at += 1 + int(whole.Bytes)/12 {
		opts := archive.Options{}.OnDisk(func(out io.Writer) io.Writer { return &rot{Writer: out, at: at} })
		_, err := archive.Write(t.Context(), w.db, source, w.dir, opts)
		var damaged *archive.DamagedError
		if !errors.As(err, &damaged) || !damaged.New {
			t.Errorf("byte %d: %v", at, err)
		}
		if names := w.names(); len(names) != 0 {
			t.Errorf("byte %d: %v left", at, names)
		}
	}
}

func TestALargeDayTakesTheMemoryOfASmallOne(t *testing.T) {
	const few, many = 5_000, 60_000
	w := newWorld(t)
	w.fill(0, many, 300)
	small := w.peak(few)
	if large := w.peak(many); large > small+16<<20 { // the events themselves are above 40 MB
		t.Errorf("%d events take %d MB, %d take %d MB", many, large>>20, few, small>>20)
	}
}

// peak is the most memory that it takes to write the first n events and to read
// them again.
func (w *world) peak(n int) (high uint64) {
	w.t.Helper()
	look := func() {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		high = max(high, m.HeapAlloc)
	}
	src := source
	must(w.t, w.db.QueryRow(w.t.Context(), `SELECT id FROM waybill.outbox_events ORDER BY id OFFSET $1 LIMIT 1`, n-1).Scan(&src.To))
	src.To[15]++ // the n-th included
	res, err := archive.Write(w.t.Context(), w.db, src, w.t.TempDir(), archive.Options{Progress: func(step archive.Step, rows int64) {
		if rows%20_000 == 0 || step != archive.Writing {
			look()
		}
	}})
	must(w.t, err)
	a, err := archive.OpenFiles(res.File.Path)
	must(w.t, err)
	read := 0
	for _, err := range a.Events(uuid.Nil, uuid.Nil) {
		must(w.t, err)
		if read++; read%20_000 == 0 {
			look()
		}
	}
	if res.Rows != int64(n) || read != n {
		w.t.Fatalf("wrote %d and read %d events of %d", res.Rows, read, n)
	}
	return high
}
