package embedded

// walkRecords says whether b is exactly count records, numbered from 0.
func walkRecords(b []byte, count int32) bool {
	for i := range int64(count) {
		n, rest, ok := varint(b)
		if !ok || n < 0 || n > int64(len(rest)) {
			return false
		}
		if !wellFormed(rest[:n], i) {
			return false
		}
		b = rest[n:]
	}
	return len(b) == 0
}

// wellFormed says whether b is the inside of one record: attributes, time,
// number, key, value, headers.
func wellFormed(b []byte, number int64) bool {
	if len(b) < 1 {
		return false
	}
	_, b, ok := varint(b[1:])
	if !ok {
		return false
	}
	n, b, ok := varint(b)
	if !ok || n != number {
		return false
	}
	if b, ok = skipBytes(b, true); !ok { // key
		return false
	}
	if b, ok = skipBytes(b, true); !ok { // value
		return false
	}
	headers, b, ok := varint(b)
	if !ok || headers < 0 || headers > int64(len(b)) {
		return false
	}
	for range headers {
		if b, ok = skipBytes(b, false); !ok {
			return false
		}
		if b, ok = skipBytes(b, true); !ok {
			return false
		}
	}
	return len(b) == 0
}

func skipBytes(b []byte, nullable bool) ([]byte, bool) {
	n, rest, ok := varint(b)
	switch {
	case !ok:
		return nil, false
	case n == -1 && nullable:
		return rest, true
	case n < 0 || n > int64(len(rest)):
		return nil, false
	}
	return rest[n:], true
}

// varint reads a zigzag number of at most ten bytes. Lengths and numbers are
// of 32 bits, five bytes: a longer one is refused by their range.
func varint(b []byte) (int64, []byte, bool) {
	if len(b) > 0 && b[0] < 0x80 {
		return int64(b[0]>>1) ^ -int64(b[0]&1), b[1:], true
	}
	var u uint64
	for i := range min(len(b), 10) {
		c := b[i]
		if i == 9 && c > 1 {
			return 0, nil, false
		}
		u |= uint64(c&0x7f) << (7 * i)
		if c < 0x80 {
			return int64(u>>1) ^ -int64(u&1), b[i+1:], true // #nosec G115 -- zigzag
		}
	}
	return 0, nil, false
}
