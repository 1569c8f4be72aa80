package embedded

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
)

// Where things stand in a record batch of magic 2.
const (
	batchLength     = 8
	batchMagic      = 16
	batchCRC        = 17
	batchAttributes = 21
	batchLast       = 23
	batchMaxTime    = 35
	batchCount      = 57
	batchRecords    = 61

	attrCodec         = 0x07
	attrTransactional = 0x10
	attrControl       = 0x20
)

// maxAhead is how far a record's time may lie ahead of ours, Kafka's default:
// a record from next year would keep everything before it from expiring.
const maxAhead = time.Hour

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// judgeBatch checks what the broker does not. What it does check (length,
// magic, checksum) is left to it: it answers, and a damaged batch is retried.
//
// Records are read to the last byte. The broker reads them itself when asked
// for an offset by time, and trusts what it finds.
func (g *guard) judgeBatch(b []byte) error {
	if len(b) < batchRecords || b[batchMagic] != 2 || int(binary.BigEndian.Uint32(b[batchLength:])) != len(b)-12 ||
		binary.BigEndian.Uint32(b[batchCRC:]) != crc32.Checksum(b[batchAttributes:], castagnoli) {
		return nil
	}
	attrs := binary.BigEndian.Uint16(b[batchAttributes:])
	if attrs&(attrTransactional|attrControl) != 0 {
		return &badBatch{kerr.InvalidTxnState, "transactions are not offered"}
	}
	if ms := int64(binary.BigEndian.Uint64(b[batchMaxTime:])); ms > time.Now().Add(maxAhead).UnixMilli() { // #nosec G115
		return &badBatch{kerr.InvalidTimestamp, fmt.Sprintf("a record's time lies more than %s ahead", maxAhead)}
	}
	count := int32(binary.BigEndian.Uint32(b[batchCount:])) // #nosec G115 -- signed on the wire
	if count < 1 {
		return &badBatch{kerr.InvalidRecord, fmt.Sprintf("a batch of %d records", count)}
	}
	return g.judgeRecords(b[batchRecords:], attrs&attrCodec, count)
}

func (g *guard) judgeRecords(records []byte, codec uint16, count int32) error {
	if codec != 0 {
		g.inflate <- struct{}{}
		defer func() { <-g.inflate }()
		plain, done, err := inflate(records, codec)
		if err != nil {
			return &badBatch{kerr.InvalidRecord, fmt.Sprintf("a batch that does not unpack: %v", err)}
		}
		defer done()
		records = plain
	}
	if !walkRecords(records, count) {
		return &badBatch{kerr.InvalidRecord, "records that do not parse"}
	}
	return nil
}
