package cdc

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"math"
	"strconv"
	"unicode/utf8"
)

// kind is how values of a column are carried in Avro. What has no kind of its
// own travels as the text Postgres prints.
type kind uint8

const (
	kindString kind = iota
	kindBoolean
	kindInt
	kindLong
	kindFloat
	kindDouble
	kindBytes
	kindUUID
	kindDate
	kindTime
	kindTimestamp   // without time zone
	kindTimestampTZ // a moment
)

var avroTypes = [...]string{
	kindString:      `"string"`,
	kindBoolean:     `"boolean"`,
	kindInt:         `"int"`,
	kindLong:        `"long"`,
	kindFloat:       `"float"`,
	kindDouble:      `"double"`,
	kindBytes:       `"bytes"`,
	kindUUID:        `{"type":"string","logicalType":"uuid"}`,
	kindDate:        `{"type":"int","logicalType":"date"}`,
	kindTime:        `{"type":"long","logicalType":"time-micros"}`,
	kindTimestamp:   `{"type":"long","logicalType":"local-timestamp-micros"}`,
	kindTimestampTZ: `{"type":"long","logicalType":"timestamp-micros"}`,
}

// append adds the Avro form of a value that Postgres printed as text under
// [printing]. It is false, with b as it was, for a text that is none of its
// kind.
func (k kind) append(b, text []byte) ([]byte, bool) {
	switch k {
	case kindBoolean:
		return appendBoolean(b, text)
	case kindInt:
		n, err := strconv.ParseInt(string(text), 10, 32)
		return appendIf(err == nil, b, n)
	case kindLong:
		n, err := strconv.ParseInt(string(text), 10, 64)
		return appendIf(err == nil, b, n)
	case kindFloat:
		f, err := strconv.ParseFloat(string(text), 32) // NaN and Infinity too
		if err != nil {
			return b, false
		}
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(f))), true
	case kindDouble:
		f, err := strconv.ParseFloat(string(text), 64)
		if err != nil {
			return b, false
		}
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(f)), true
	case kindBytes:
		return appendHex(b, text)
	case kindDate:
		n, ok := parseDate(text)
		return appendIf(ok, b, int64(n))
	case kindTime:
		n, ok := parseTime(text)
		return appendIf(ok, b, n)
	case kindTimestamp, kindTimestampTZ:
		n, ok := parseTimestamp(text)
		return appendIf(ok, b, n)
	default:
		return appendString(b, text), true
	}
}

func appendIf(ok bool, b []byte, n int64) ([]byte, bool) {
	if !ok {
		return b, false
	}
	return appendLong(b, n), true
}

func appendBoolean(b, text []byte) ([]byte, bool) {
	switch string(text) {
	case "t":
		return append(b, 1), true
	case "f":
		return append(b, 0), true
	}
	return b, false
}

// appendHex adds a bytea, printed as \x and hexadecimal digits.
func appendHex(b, text []byte) ([]byte, bool) {
	digits, ok := bytes.CutPrefix(text, []byte(`\x`))
	if !ok {
		return b, false
	}
	before := len(b)
	b = appendLong(b, int64(hex.DecodedLen(len(digits))))
	b, err := hex.AppendDecode(b, digits)
	if err != nil {
		return b[:before], false
	}
	return b, true
}

// appendLong adds an Avro int or long: zigzag, seven bits a byte, which Go
// calls a varint.
func appendLong(b []byte, n int64) []byte { return binary.AppendVarint(b, n) }

// appendString adds an Avro string, which must be UTF-8. A database in
// SQL_ASCII may hold other bytes: they become U+FFFD rather than stop the
// stream.
func appendString(b, s []byte) []byte {
	if !utf8.Valid(s) {
		s = bytes.ToValidUTF8(s, []byte("\uFFFD"))
	}
	return append(appendLong(b, int64(len(s))), s...)
}

func appendStrings(b []byte, list []string) []byte {
	if len(list) > 0 {
		b = appendLong(b, int64(len(list)))
		for _, s := range list {
			b = append(appendLong(b, int64(len(s))), s...)
		}
	}
	return append(b, 0) // no further block
}

func appendBool(b []byte, v bool) []byte {
	if v {
		return append(b, 1)
	}
	return append(b, 0)
}
