package cdc

// parseArray calls put with each item of a one-dimensional array as Postgres
// prints it; null items come as nil. It is false for what is no such array:
// more dimensions, or bounds of its own. put's slice is valid until it returns.
func parseArray(text []byte, put func(item []byte) bool) bool {
	if len(text) < 2 || text[0] != '{' || text[len(text)-1] != '}' {
		return false
	}
	b := text[1 : len(text)-1]
	if len(b) == 0 {
		return true
	}
	var scratch []byte
	for {
		item, rest, ok := arrayItem(b, &scratch)
		if !ok || !put(item) {
			return false
		}
		if len(rest) == 0 {
			return true
		}
		if rest[0] != ',' {
			return false
		}
		b = rest[1:]
	}
}

func arrayItem(b []byte, scratch *[]byte) (item, rest []byte, ok bool) {
	if len(b) > 0 && b[0] == '"' {
		return quotedItem(b[1:], scratch)
	}
	end := len(b)
	for i, c := range b {
		switch c {
		case '{', '}', '"', '\\':
			return nil, nil, false
		case ',':
			end = i
		default:
			continue
		}
		break
	}
	if end == 0 {
		return nil, nil, false // an empty string is quoted
	}
	if string(b[:end]) == "NULL" {
		return nil, b[end:], true
	}
	return b[:end:end], b[end:], true
}

// quotedItem reads up to the closing quote, taking backslashes away.
func quotedItem(b []byte, scratch *[]byte) (item, rest []byte, ok bool) {
	out := (*scratch)[:0]
	for i := 0; i < len(b); i++ {
		switch b[i] {
		case '"':
			*scratch = out
			if out == nil {
				out = []byte{} // not the nil that is a null
			}
			return out, b[i+1:], true
		case '\\':
			if i++; i == len(b) {
				return nil, nil, false
			}
		}
		out = append(out, b[i])
	}
	return nil, nil, false
}

// appendArray adds an array as a block of nullable items; see
// [columnType.avro].
func (k kind) appendArray(b, text []byte) ([]byte, bool) {
	before := len(b)
	n := 0
	if !parseArray(text, func([]byte) bool { n++; return true }) {
		return b, false
	}
	if n > 0 {
		b = appendLong(b, int64(n))
	}
	ok := parseArray(text, func(item []byte) (ok bool) {
		if item == nil {
			b = appendLong(b, 0)
			return true
		}
		b, ok = k.append(appendLong(b, 1), item)
		return ok
	})
	if !ok {
		return b[:before], false
	}
	return append(b, 0), true
}
