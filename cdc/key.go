package cdc

import (
	"bytes"

	"github.com/waybillhq/waybill/pg/wal"
)

// appendKey adds the record's key: the primary key as Postgres prints it. That
// of several columns has them joined by /, with / and % inside of them written
// as %2F and %25. It is false where a part is not known.
func (s *shape) appendKey(b []byte, row []wal.Value) ([]byte, bool) {
	for i, at := range s.keys {
		v := row[at]
		if v.Kind != wal.Text {
			return b, false
		}
		if len(s.keys) == 1 {
			return append(b, v.Data...), true
		}
		if i > 0 {
			b = append(b, '/')
		}
		b = appendPart(b, v.Data)
	}
	return b, len(s.keys) > 0
}

func appendPart(b, part []byte) []byte {
	for _, c := range part {
		switch c {
		case '%':
			b = append(b, "%25"...)
		case '/':
			b = append(b, "%2F"...)
		default:
			b = append(b, c)
		}
	}
	return b
}

// splitKey takes the parts of a key of n columns apart again. It is false for
// what is no such key.
func splitKey(key []byte, n int) ([][]byte, bool) {
	if n == 1 {
		return [][]byte{key}, true
	}
	parts := bytes.Split(key, []byte("/"))
	if len(parts) != n {
		return nil, false
	}
	for i, p := range parts {
		p = bytes.ReplaceAll(p, []byte("%2F"), []byte("/"))
		parts[i] = bytes.ReplaceAll(p, []byte("%25"), []byte("%"))
	}
	return parts, true
}
