package wal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/waybillhq/waybill/pg/wal"
)

// message builds pgoutput messages by the protocol's description.
type message struct{ bytes.Buffer }

func (m *message) put(vs ...any) *message {
	for _, v := range vs {
		switch v := v.(type) {
		case string:
			m.WriteString(v)
			m.WriteByte(0)
		case byte:
			m.WriteByte(v)
		default:
			_ = binary.Write(m, binary.BigEndian, v)
		}
	}
	return m
}

func begin(xid uint32, at int64) []byte {
	return new(message).put(byte('B'), uint64(77), at, xid).Bytes()
}

func commit(end uint64) []byte {
	return new(message).put(byte('C'), byte(0), uint64(1), end, int64(0)).Bytes()
}

func relation(id uint32, name string, columns ...string) []byte {
	m := new(message).put(byte('R'), id, "public", name, byte('d'), uint16(len(columns)))
	for _, c := range columns {
		m.put(byte(1), c, uint32(25), int32(-1))
	}
	return m.Bytes()
}

// insert builds an insert; a nil value is a null.
func insert(id uint32, values ...[]byte) []byte {
	m := new(message).put(byte('I'), id, byte('N'), uint16(len(values)))
	for _, v := range values {
		if v == nil {
			m.put(byte('n'))
			continue
		}
		m.put(byte('b'), uint32(len(v)))
		m.Write(v)
	}
	return m.Bytes()
}

// heard records what a decoder said.
type heard struct {
	begins  []wal.Begin
	rows    [][]wal.Value
	tables  []string
	commits []wal.LSN
}

func (h *heard) Begin(b wal.Begin) error { h.begins = append(h.begins, b); return nil }

func (h *heard) Insert(rel *wal.Relation, row []wal.Value) error {
	kept := make([]wal.Value, len(row))
	for i, v := range row {
		kept[i] = wal.Value{Kind: v.Kind, Data: bytes.Clone(v.Data)}
	}
	h.rows, h.tables = append(h.rows, kept), append(h.tables, rel.Namespace+"."+rel.Name)
	return nil
}

func (h *heard) Commit(end wal.LSN) error { h.commits = append(h.commits, end); return nil }

func TestDecodeGivesTransactionsAsTheyWereSent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.SliceOf(rapid.Byte()), 0, 8).Draw(t, "values")
		var columns []string
		for range values {
			columns = append(columns, "c")
		}
		h := &heard{}
		d := wal.NewDecoder(h)
		for _, m := range [][]byte{relation(9, "thing", columns...), begin(5, 1e6), insert(9, values...), commit(99)} {
			if err := d.Decode(m); err != nil {
				t.Fatal(err)
			}
		}
		if len(h.begins) != 1 || h.begins[0].XID != 5 || !h.begins[0].CommitTime.Equal(time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC)) {
			t.Fatalf("begins %+v", h.begins)
		}
		if len(h.commits) != 1 || h.commits[0] != 99 || h.tables[0] != "public.thing" {
			t.Fatalf("commits %v tables %v", h.commits, h.tables)
		}
		for i, v := range values {
			if got := h.rows[0][i]; got.Kind == wal.Binary && !bytes.Equal(got.Data, v) {
				t.Fatalf("column %d: %x, want %x", i, got.Data, v)
			}
		}
	})
}

func TestDecodeRefusesEveryTruncation(t *testing.T) {
	whole := [][]byte{begin(1, 1), commit(2), relation(9, "thing", "a", "b"), insert(9, []byte("x"), nil, []byte{})}
	for _, m := range whole {
		for n := range len(m) {
			d := wal.NewDecoder(&heard{})
			if m[0] != 'B' {
				if err := d.Decode(begin(1, 1)); err != nil {
					t.Fatal(err)
				}
			}
			if m[0] == 'I' {
				if err := d.Decode(relation(9, "thing", "a", "b", "c")); err != nil {
					t.Fatal(err)
				}
			}
			err := d.Decode(m[:n])
			// A commit's last field, its time, is not read.
			if err == nil && (m[0] != 'C' || n < len(m)-8) {
				t.Errorf("%q cut to %d of %d bytes was taken", m[0], n, len(m))
			}
			if err != nil && !errors.Is(err, wal.ErrMalformed) {
				t.Errorf("error %v", err)
			}
		}
	}
}

func TestDecodeRefusesWhatComesOutOfPlace(t *testing.T) {
	for name, ms := range map[string][][]byte{
		"row before begin":  {relation(9, "thing", "a"), insert(9, []byte("x"))},
		"row after commit":  {relation(9, "thing", "a"), begin(1, 1), commit(2), insert(9, []byte("x"))},
		"commit of nothing": {commit(2)},
		"begin in begin":    {begin(1, 1), begin(2, 1)},
	} {
		d := wal.NewDecoder(&heard{})
		for _, m := range ms[:len(ms)-1] {
			if err := d.Decode(m); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if err := d.Decode(ms[len(ms)-1]); !errors.Is(err, wal.ErrMalformed) {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestDecodeRefusesUnannouncedRelation(t *testing.T) {
	d := wal.NewDecoder(&heard{})
	if err := d.Decode(begin(1, 1)); err != nil {
		t.Fatal(err)
	}
	if err := d.Decode(insert(1, []byte("x"))); !errors.Is(err, wal.ErrMalformed) {
		t.Errorf("error %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add(begin(1, 1))
	f.Add(commit(2))
	f.Add(relation(9, "thing", "a"))
	f.Add(insert(9, []byte("x"), nil))
	f.Fuzz(func(t *testing.T, m []byte) {
		d := wal.NewDecoder(&heard{})
		if err := d.Decode(relation(9, "thing", "a", "b")); err != nil {
			t.Fatal(err)
		}
		_ = d.Decode(m) // whatever it is, no panic
		_ = d.Decode(begin(1, 1))
		_ = d.Decode(insert(9, m, nil)) // and the decoder still works
		_ = d.Decode(append(begin(1, 1), m...))
	})
}
