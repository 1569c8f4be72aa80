package embedded

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// specimen is a request of every kind and version, empty and filled.
func specimen() [][]byte {
	var out [][]byte
	for key, s := range served {
		for v := s.min; v <= s.max; v++ {
			empty := kmsg.RequestForKey(key)
			full := kmsg.RequestForKey(key)
			empty.SetVersion(v)
			fill(reflect.ValueOf(full).Elem(), 0)
			full.SetVersion(v)
			out = append(out, encode(empty)[4:], encode(full)[4:])
		}
	}
	return out
}

// fill gives every field a value that means something to the broker.
func fill(v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && v.Type().Field(i).Name != "UnknownTags" {
				fill(v.Field(i), depth+1)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem(), depth)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes(batchOf(0, 1, 0, (&kmsg.Record{Length: 8, Key: []byte("k"), Value: []byte("v")}).AppendTo(nil)))
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range 2 {
			fill(v.Index(i), depth)
		}
	case reflect.String:
		v.SetString("things")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32:
		v.SetInt(10_000)
	case reflect.Int8, reflect.Int16, reflect.Int64:
		v.SetInt(1)
	default:
	}
}

// fire sends frames over one connection, waits for nothing and asks whether
// the broker still stands.
func (tg *target) fire(t testing.TB, frames ...[]byte) {
	c := tg.dial(t)
	for _, f := range frames {
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		if _, err := c.Write(framed(f)); err != nil {
			break
		}
	}
	_ = c.SetReadDeadline(time.Now().Add(2 * time.Millisecond)) // some answers never come
	_, _ = io.CopyN(io.Discard, c, 4)
	_ = c.Close()
	tg.stands(t)
}

// FuzzFrame sends any request to a running broker.
func FuzzFrame(f *testing.F) {
	for _, b := range specimen() {
		f.Add(b)
	}
	tg := newTarget(f)
	f.Fuzz(func(t *testing.T, b []byte) { tg.fire(t, b) })
}

// FuzzBatch produces any records under a true checksum and makes the broker
// read them.
func FuzzBatch(f *testing.F) {
	good := (&kmsg.Record{Length: 8, Key: []byte("k"), Value: []byte("v")}).AppendTo(nil)
	f.Add(uint8(0), int32(1), int32(0), good)
	f.Add(uint8(0), int32(2), int32(1), append(good, good...))
	for codec := range uint8(5) {
		f.Add(codec, int32(1), int32(0), compressed(codec, good))
	}
	tg := newTarget(f)
	f.Fuzz(func(t *testing.T, codec uint8, count, last int32, records []byte) {
		tg.send(t, encode(produceRaw(9, batchOf(uint16(codec), count, last, records))))
		tg.listByTime(t)
	})
}

func compressed(codec uint8, b []byte) []byte {
	codecs := []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()}
	c, err := kgo.DefaultCompressor(codecs[codec])
	if err != nil || c == nil {
		return b
	}
	out, _ := c.Compress(new(bytes.Buffer), b)
	return out
}

// FuzzRecords compares the guard's reading of records with the reading the
// broker does when asked for an offset by time: what the guard lets through,
// the other must read to the end.
func FuzzRecords(f *testing.F) {
	good := (&kmsg.Record{Length: 8, Key: []byte("k"), Value: []byte("v")}).AppendTo(nil)
	f.Add(int32(1), good)
	f.Add(int32(2), append(good, good...))
	f.Fuzz(func(t *testing.T, count int32, b []byte) {
		if !walkRecords(b, count) {
			return
		}
		for range count {
			var r kmsg.Record
			if err := r.ReadFrom(b); err != nil {
				t.Fatalf("%d records passed and do not parse: %v", count, err)
			}
			n, took := binary.Varint(b)
			b = b[n+int64(took):]
		}
		if len(b) > 0 {
			t.Fatal("bytes left")
		}
	})
}

// TestMutatedRequestsDoNotStopTheBroker is the fuzz target's idea in the time
// of a test, several frames to a connection so that state builds up.
func TestMutatedRequestsDoNotStopTheBroker(t *testing.T) {
	tg := newTarget(t)
	seeds := specimen()
	rounds := 4000
	if testing.Short() {
		rounds = 200
	}
	for range rounds {
		frames := make([][]byte, 1+rand.IntN(3))
		for i := range frames {
			frames[i] = mutate(append([]byte(nil), seeds[rand.IntN(len(seeds))]...))
		}
		tg.fire(t, frames...)
	}
}

func mutate(b []byte) []byte {
	for range rand.IntN(4) {
		if len(b) < 9 {
			return b
		}
		at := 8 + rand.IntN(len(b)-8) // key, version and correlation id stay
		switch rand.IntN(5) {
		case 0:
			b[at] = byte(rand.IntN(256))
		case 1:
			b[at] ^= 1 << rand.IntN(8)
		case 2:
			copy(b[at:], []byte{0xff, 0xff, 0xff, 0xff})
		case 3:
			copy(b[at:], []byte{0x7f, 0xff, 0xff, 0xff})
		default:
			b = append(b[:at], b[min(len(b), at+1+rand.IntN(8)):]...)
		}
	}
	return b
}
