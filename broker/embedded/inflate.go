package embedded

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"
)

// maxInflated bounds what a batch unpacks to: a few kilobytes can become
// gigabytes.
const maxInflated = 64 << 20

// keepInflated is what an idle unpacker may hold on to until the next
// collection.
const keepInflated = 32 << 20

var (
	errInflated = errors.New("larger than 64 MiB when unpacked")
	errCodec    = errors.New("unknown compression")
	errXerial   = errors.New("malformed snappy frame")
)

// unpacker keeps what unpacking a batch needs, to be used again.
type unpacker struct {
	out  bytes.Buffer
	flat []byte
	gzip *gzip.Reader
	lz4  *lz4.Reader
	zstd *zstd.Decoder
}

var unpackers = sync.Pool{New: func() any { return new(unpacker) }}

// inflate unpacks a batch's records; what it returns is valid until done is
// called.
func inflate(b []byte, codec uint16) (plain []byte, done func(), err error) {
	u := unpackers.Get().(*unpacker)
	done = func() {
		if u.out.Cap()+cap(u.flat) <= keepInflated {
			unpackers.Put(u)
		}
	}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("unpack: %v", p) // u is not put back
		} else if err != nil {
			done()
		}
	}()
	u.out.Reset()
	switch codec {
	case 1:
		plain, err = u.gunzip(b)
	case 2:
		plain, err = u.unsnap(b)
	case 3:
		plain, err = u.unlz4(b)
	case 4:
		plain, err = u.unzstd(b)
	default:
		err = errCodec
	}
	return plain, done, err
}

func (u *unpacker) drain(r io.Reader) ([]byte, error) {
	n, err := u.out.ReadFrom(io.LimitReader(r, maxInflated+1))
	if err != nil {
		return nil, err
	}
	if n > maxInflated {
		return nil, errInflated
	}
	return u.out.Bytes(), nil
}

func (u *unpacker) gunzip(b []byte) ([]byte, error) {
	if u.gzip == nil {
		r, err := gzip.NewReader(bytes.NewReader(b))
		if err != nil {
			return nil, err
		}
		u.gzip = r
	} else if err := u.gzip.Reset(bytes.NewReader(b)); err != nil {
		return nil, err
	}
	return u.drain(u.gzip)
}

func (u *unpacker) unlz4(b []byte) ([]byte, error) {
	if u.lz4 == nil {
		u.lz4 = lz4.NewReader(nil)
	}
	u.lz4.Reset(bytes.NewReader(b))
	return u.drain(u.lz4)
}

func (u *unpacker) unzstd(b []byte) ([]byte, error) {
	if u.zstd == nil {
		d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxInflated))
		if err != nil {
			return nil, err
		}
		u.zstd = d
	}
	out, err := u.zstd.DecodeAll(b, u.flat[:0])
	u.flat = out[:0]
	return out, err
}

// xerial is how Java clients frame snappy: a header, then blocks with their
// lengths.
var xerial = []byte{130, 'S', 'N', 'A', 'P', 'P', 'Y', 0}

const xerialHeader = 16

func (u *unpacker) unsnap(b []byte) ([]byte, error) {
	if len(b) <= xerialHeader || !bytes.HasPrefix(b, xerial) {
		return u.unblock(b)
	}
	for b = b[xerialHeader:]; len(b) > 0; {
		if len(b) < 4 {
			return nil, errXerial
		}
		n := int64(binary.BigEndian.Uint32(b))
		if b = b[4:]; n > int64(len(b)) {
			return nil, errXerial
		}
		plain, err := u.unblock(b[:n])
		if err != nil {
			return nil, err
		}
		if u.out.Len()+len(plain) > maxInflated {
			return nil, errInflated
		}
		u.out.Write(plain)
		b = b[n:]
	}
	return u.out.Bytes(), nil
}

func (u *unpacker) unblock(b []byte) ([]byte, error) {
	n, err := s2.DecodedLen(b)
	if err != nil {
		return nil, err
	}
	if n > maxInflated {
		return nil, errInflated
	}
	out, err := s2.Decode(u.flat[:cap(u.flat)], b)
	if err == nil && cap(out) > cap(u.flat) {
		u.flat = out
	}
	return out, err
}
