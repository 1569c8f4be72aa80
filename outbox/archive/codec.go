package archive

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"maps"
	"slices"

	"github.com/klauspost/compress/zstd"
	"github.com/twmb/avro/ocf"
)

// blockBytes is about how much is compressed at a time; one event may be
// larger. Readers hold a block of each file they have open.
const blockBytes = 256 << 10

// maxBlock bounds what a reader takes for a block, and so one event.
const maxBlock = 64 << 20

// digesting is zstandard that keeps the digest of what passes through it, so
// that the very bytes of the events are digested on either way.
type digesting struct {
	zstd ocf.Codec
	sum  hash.Hash
}

func newCodec() (*digesting, error) {
	// The window bounds the encoder's memory; a block needs no more. Frames
	// carry a checksum of their own by default.
	z, err := ocf.ZstdCodec([]zstd.EOption{zstd.WithWindowSize(1 << 20)}, nil)
	if err != nil {
		return nil, err
	}
	return &digesting{zstd: z, sum: sha256.New()}, nil
}

func (d *digesting) Name() string { return d.zstd.Name() }
func (d *digesting) Close() error { return d.zstd.Close() }

func (d *digesting) Compress(src []byte) ([]byte, error) {
	d.sum.Write(src)
	return d.zstd.Compress(src)
}

func (d *digesting) Decompress(src []byte) ([]byte, error) {
	return d.DecompressBounded(src, maxBlock)
}

func (d *digesting) DecompressBounded(src []byte, limit int64) ([]byte, error) {
	out, err := d.zstd.(ocf.BoundedDecompressor).DecompressBounded(src, limit)
	d.sum.Write(out)
	return out, err
}

// begin takes a file's header into the digest, before its events: all but the
// summary, which the digest is to stand in.
func (d *digesting) begin(header map[string][]byte) {
	for _, key := range slices.Sorted(maps.Keys(header)) {
		if key == keySummary {
			continue
		}
		for _, part := range [][]byte{[]byte(key), header[key]} {
			d.sum.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
			d.sum.Write(part)
		}
	}
}

func (d *digesting) digest() (out Digest) {
	d.sum.Sum(out[:0])
	return out
}
