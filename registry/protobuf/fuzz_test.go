package protobuf_test

import (
	"testing"

	"github.com/waybillhq/waybill/registry/compat"
	"github.com/waybillhq/waybill/registry/protobuf"
)

// fuzzSize keeps inputs small, so that what is slow is so for a reason.
const fuzzSize = 4 << 10

func read(text string, kept bool) (*protobuf.Schema, error) {
	var im protobuf.Imports
	if err := im.Add("a.proto", p3("package d; message A { int32 x = 1; enum E { Z = 0; } }")); err != nil {
		return nil, err
	}
	return im.Compile(text, kept)
}

// What is taken is written in a way that is taken again and means the same.
func FuzzRead(f *testing.F) {
	for _, text := range languages() {
		f.Add(text)
		if s, err := read(text, false); err == nil {
			f.Add(serialized(f, s))
		}
	}
	f.Add(`syntax = "proto3"; import "a.proto"; message M { d.A a = 1; map<string, d.A.E> e = 2; }`)
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > fuzzSize {
			return
		}
		kept, err := protobuf.Canonical(text)
		if err != nil {
			return
		}
		if again, err := protobuf.Canonical(kept); err != nil || again != kept {
			t.Fatalf("canonical twice: %v\n%s\n%s", err, kept, again)
		}
		if _, err := protobuf.WithoutExtensions(text); err != nil {
			t.Fatal(err)
		}
		s, err := read(kept, false)
		if _, lax := read(kept, true); err == nil && lax != nil {
			t.Fatalf("refused as kept: %v", lax)
		}
		if err != nil {
			return
		}
		normal := s.Normal()
		other, err := read(normal, false)
		if err != nil {
			t.Fatalf("normal form is refused: %v\n%s", err, normal)
		}
		if got := other.Normal(); got != normal {
			t.Fatalf("normal twice:\n%s\n%s", normal, got)
		}
		if _, err := s.Serialized(); err != nil {
			t.Fatal(err)
		}
	})
}

func FuzzCheck(f *testing.F) {
	for _, c := range rules() {
		f.Add(c.earlier, c.later)
	}
	for _, text := range languages() {
		f.Add(text, text)
	}
	f.Fuzz(func(t *testing.T, earlier, later string) {
		if len(earlier)+len(later) > fuzzSize {
			return
		}
		a, errA := read(earlier, true)
		b, errB := read(later, true)
		if errA != nil || errB != nil {
			return
		}
		for _, level := range compat.Levels() {
			for _, r := range protobuf.Check(level, b, []protobuf.Version{{Number: 1, Schema: a}}) {
				helps(t, r.String())
			}
			if got := protobuf.Check(level, a, []protobuf.Version{{Number: 1, Schema: a}}); len(got) > 0 {
				t.Fatalf("a schema does not follow itself: %v\n%s", got, earlier)
			}
		}
	})
}
