//go:build unix

package local_test

import (
	"testing"

	"github.com/waybillhq/waybill/pg/local"
	"github.com/waybillhq/waybill/pg/pgtest"
)

// BenchmarkStartFromNothing is from an empty directory to connections
// accepted, with role and database there and all of it on disk.
func BenchmarkStartFromNothing(b *testing.B) {
	for b.Loop() {
		b.StopTimer()
		dir := pgtest.Dir(b)
		b.StartTimer()
		s, err := local.Start(b.Context(), local.Config{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// BenchmarkRestart stops and starts a server that has its data.
func BenchmarkRestart(b *testing.B) {
	dir := pgtest.Dir(b)
	for b.Loop() {
		s, err := local.Start(b.Context(), local.Config{Dir: dir})
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Stop(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
