package queue

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// handle is a receipt's content: which message, and which delivery of it.
type handle struct {
	id    uuid.UUID
	token int64
}

// newToken is a number for the deliveries of one Receive. It is random: two
// deliveries of a message must not share one, whichever process makes them.
func newToken() int64 {
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails
	return int64(binary.BigEndian.Uint64(b[:]))
}

func (h handle) String() string {
	b := binary.BigEndian.AppendUint64(h.id[:], uint64(h.token))
	return base64.RawURLEncoding.EncodeToString(b)
}

func parseReceipt(s string) (handle, error) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil || len(b) != 24 {
		return handle{}, fmt.Errorf("%w receipt %.40q: want one as Receive gave it", ErrInvalid, s)
	}
	return handle{uuid.UUID(b[:16]), int64(binary.BigEndian.Uint64(b[16:]))}, nil
}

// parseReceipts reads receipts and sorts them by message: statements that lock
// the same rows then lock them in the same order.
func parseReceipts(receipts []string) (ids []uuid.UUID, tokens []int64, err error) {
	if len(receipts) > MaxBatch {
		return nil, nil, fmt.Errorf("%w number of receipts %d: at most %d at a time", ErrInvalid, len(receipts), MaxBatch)
	}
	all := make([]handle, len(receipts))
	for i, r := range receipts {
		if all[i], err = parseReceipt(r); err != nil {
			return nil, nil, err
		}
	}
	slices.SortFunc(all, func(a, b handle) int { return bytes.Compare(a.id[:], b.id[:]) })
	all = slices.Compact(all)
	for _, h := range all {
		ids, tokens = append(ids, h.id), append(tokens, h.token)
	}
	return ids, tokens, nil
}

// ReceiptError tells which receipts were refused; those not named were good and
// what was asked for is done. It is [ErrReceipt].
type ReceiptError struct{ Receipts []string }

func (e *ReceiptError) Error() string {
	list := strings.Join(e.Receipts[:min(3, len(e.Receipts))], ", ")
	return fmt.Sprintf("%v (%d of them: %s): the message was done or given back, or its lease ended and it is another worker's", ErrReceipt, len(e.Receipts), list)
}

// Is makes it an ErrReceipt.
func (e *ReceiptError) Is(target error) bool { return errors.Is(target, ErrReceipt) }

// refused are the receipts that are not among the done.
func refused(ids []uuid.UUID, tokens []int64, done []handle) error {
	if len(done) == len(ids) {
		return nil
	}
	was := make(map[handle]bool, len(done))
	for _, h := range done {
		was[h] = true
	}
	var bad []string
	for i, id := range ids {
		if h := (handle{id, tokens[i]}); !was[h] {
			bad = append(bad, h.String())
		}
	}
	return &ReceiptError{bad}
}
