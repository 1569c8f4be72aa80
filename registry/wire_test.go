package registry_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

	"github.com/waybillhq/waybill/registry"
)

func FuzzSplitHeader(f *testing.F) {
	for _, seed := range []string{"", "\x00", "\x00\x00\x00\x00\x01", "\x00\xff\xff\xff\xff", "\x01\x00\x00\x00\x01x", "{\"a\":1}"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		id, body, err := registry.SplitHeader(value)
		if err != nil {
			if !errors.Is(err, registry.ErrNotWireFormat) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if id < 0 || id > math.MaxInt32 {
			t.Fatalf("id %d", id)
		}
		if again := append(registry.AppendHeader(nil, id), body...); !bytes.Equal(again, value) {
			t.Fatalf("%x became %x", value, again)
		}
	})
}

func TestHeaderIsAsConfluentWritesIt(t *testing.T) {
	if got := registry.AppendHeader([]byte("x"), 258); !bytes.Equal(got, []byte{'x', 0, 0, 0, 1, 2}) {
		t.Errorf("%x", got)
	}
}
