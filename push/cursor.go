package push

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
)

// cursor is a place in the stream a client has read up to.
//
// next and inside count for every hub. epoch, index and part mean something
// only to the hub that wrote them; there they find the place by themselves.
type cursor struct {
	epoch [8]byte // zero: only next and inside count
	index uint64  // of the next record with deliveries
	part  int     // messages of that record read already

	next []int64 // per slot, the offset to be read next
	// inside says of which records at next some messages are read already,
	// since one record may give a channel several. A client that moves between
	// hubs can be inside of one on several slots.
	inside []inside
}

type inside struct {
	slot int
	part int // messages read
}

// read is how many messages of the record at next[slot] are read.
func (c *cursor) read(slot int) int {
	for _, in := range c.inside {
		if in.slot == slot {
			return in.part
		}
	}
	return 0
}

// seen tells whether f lies before the cursor, by offsets.
func (c *cursor) seen(f *frame) bool {
	if f.offset == c.next[f.slot] {
		return f.part < c.read(f.slot)
	}
	return f.offset < c.next[f.slot]
}

// advance moves the cursor past f, by offsets.
func (c *cursor) advance(f *frame) {
	c.inside = slices.DeleteFunc(c.inside, func(in inside) bool { return in.slot == f.slot })
	if f.last {
		c.next[f.slot] = f.offset + 1
		return
	}
	c.next[f.slot] = f.offset
	c.inside = append(c.inside, inside{f.slot, f.part + 1})
}

var errCursor = errors.New("cursor is not readable")

const (
	cursorVersion = 1
	// maxCursor bounds what is decoded of a client's header.
	maxCursor = 32 << 10
	maxPart   = 1 << 30
	// cursorBlock: plain texts are padded to it, so that the length does not
	// tell how far the log has come.
	cursorBlock = 32
)

// sealer encrypts cursors, so that a client learns nothing of how much others
// receive, and authenticates them.
//
// A cursor of the same place is another text each time it is sealed: from equal
// texts a client would see that the log stood still in between, and so when
// others receive something. The random part is a counter block of 128 bits, not
// a nonce of 96, which would run out after 2^32 messages: all processes share
// one key.
type sealer struct {
	block  cipher.Block
	macKey []byte
}

const macSize = 16

func newSealer(key [32]byte) (*sealer, error) {
	derive := func(info string) ([]byte, error) { return hkdf.Key(sha256.New, key[:], nil, info, 32) }
	seal, err := derive("waybill push cursor encryption")
	if err != nil {
		return nil, fmt.Errorf("derive cursor key: %w", err)
	}
	mac, err := derive("waybill push cursor authentication")
	if err != nil {
		return nil, fmt.Errorf("derive cursor key: %w", err)
	}
	block, err := aes.NewCipher(seal)
	if err != nil {
		return nil, fmt.Errorf("cursor cipher: %w", err)
	}
	return &sealer{block, mac}, nil
}

// seal appends the cursor's text to dst.
func (s *sealer) seal(dst []byte, l *layout, c *cursor) []byte {
	sealed := make([]byte, aes.BlockSize, 96+3*l.slots)
	_, _ = rand.Read(sealed) // never fails: the program ends when there is no randomness
	sealed = appendCursor(sealed, l, c)
	s.crypt(sealed)
	return base64.RawURLEncoding.AppendEncode(dst, append(sealed, s.mac(sealed)...))
}

// open reads text that seal wrote for a log of the same topics.
func (s *sealer) open(text string, l *layout) (*cursor, error) {
	if len(text) > maxCursor {
		return nil, errCursor
	}
	sealed, err := base64.RawURLEncoding.DecodeString(text)
	n := len(sealed) - macSize
	if err != nil || n < aes.BlockSize || !hmac.Equal(s.mac(sealed[:n]), sealed[n:]) {
		return nil, errCursor
	}
	s.crypt(sealed[:n])
	return readCursor(sealed[aes.BlockSize:n], l)
}

// crypt encrypts or decrypts what follows the random block, in place.
func (s *sealer) crypt(b []byte) {
	iv, text := b[:aes.BlockSize], b[aes.BlockSize:]
	cipher.NewCTR(s.block, iv).XORKeyStream(text, text)
}

func (s *sealer) mac(b []byte) []byte {
	h := hmac.New(sha256.New, s.macKey)
	h.Write(b)
	return h.Sum(nil)[:macSize]
}

// appendCursor writes version, the log's hash, epoch, index, part, the number
// of records it is inside of and of each topic, partition and part, then for
// each topic the number of its partitions and their offsets, then padding.
func appendCursor(b []byte, l *layout, c *cursor) []byte {
	start := len(b)
	b = append(b, cursorVersion)
	b = append(b, l.hash[:]...)
	b = append(b, c.epoch[:]...)
	b = binary.AppendUvarint(b, c.index)
	b = appendInt(b, c.part)
	b = appendInt(b, len(c.inside))
	for _, in := range c.inside {
		topic, partition := l.place(in.slot)
		b = appendInt(appendInt(appendInt(b, topic), partition), in.part)
	}
	for _, t := range l.topics {
		b = appendInt(b, t.partitions)
		for _, o := range c.next[t.first : t.first+t.partitions] {
			b = binary.AppendUvarint(b, uint64(o))
		}
	}
	pad := cursorBlock - 1 - (len(b)-start+cursorBlock-1)%cursorBlock
	return append(b, make([]byte, pad)...)
}

func appendInt(b []byte, n int) []byte {
	return binary.AppendUvarint(b, uint64(n))
}

// place is the inverse of slot.
func (l *layout) place(slot int) (topic, partition int) {
	for i, t := range l.topics {
		if slot < t.first+t.partitions {
			return i, slot - t.first
		}
	}
	return 0, 0
}

// readCursor reads what appendCursor wrote, perhaps when topics had fewer
// partitions: of a partition that is new since, nothing is read yet.
func readCursor(b []byte, l *layout) (*cursor, error) {
	c := &cursor{next: make([]int64, l.slots)}
	if len(b) < 17 || b[0] != cursorVersion || !bytes.Equal(b[1:9], l.hash[:]) {
		return nil, errCursor
	}
	copy(c.epoch[:], b[9:17])
	r := reader{rest: b[17:]}
	c.index = r.uint()
	c.part = r.int(maxPart)
	for range r.int(l.slots) {
		t, p := r.int(len(l.topics)-1), 0
		if t < len(l.topics) {
			p = l.topics[t].first + r.int(l.topics[t].partitions-1)
		}
		c.inside = append(c.inside, inside{p, r.int(maxPart)})
	}
	for _, t := range l.topics {
		n := r.int(t.partitions)
		for i := range n {
			c.next[t.first+i] = r.offset()
		}
	}
	if r.bad || slices.ContainsFunc(r.rest, func(b byte) bool { return b != 0 }) {
		return nil, errCursor
	}
	return c, nil
}

// reader reads numbers and remembers that one was missing or too large.
type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) uint() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// int reads a number from 0 to most.
func (r *reader) int(most int) int {
	v := r.uint()
	if most < 0 || v > uint64(most) {
		r.bad = true
		return 0
	}
	return int(v)
}

func (r *reader) offset() int64 {
	v := int64(r.uint())
	if v < 0 {
		r.bad = true
		return 0
	}
	return v
}
