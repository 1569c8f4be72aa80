// Package seal encrypts secrets for a database: AES-256-GCM under keys that the
// program is configured with.
//
// It promises that what was sealed for one place opens in no other: a row that
// is copied to another tenant's is refused. Who has the database alone learns
// nothing of a secret but its length.
//
// The first key seals; all of them open, so that a key is replaced by putting a
// new one before it and sealing anew what was read. A nonce is random: one key
// is good for some billions of seals.
package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
)

// KeySize is the length of a key in bytes.
const KeySize = 32

// form is the first byte of what is sealed; then come idSize bytes that name the
// key, a random nonce, and the rest.
const (
	form   = 1
	idSize = 4
)

// Why something does not open.
var (
	ErrKey    = errors.New("it was sealed with a key that is not configured: give the former key beside the new one")
	ErrSealed = errors.New("sealed bytes are damaged, or are of another place")
)

// Box seals and opens. It is safe for concurrent use.
type Box struct{ keys []key }

type key struct {
	id   [idSize]byte
	aead cipher.AEAD
}

// New makes a box of keys of [KeySize] random bytes, the one that seals first.
func New(keys ...[]byte) (*Box, error) {
	if len(keys) == 0 {
		return nil, errors.New("seal: no key: configure one, of 32 random bytes")
	}
	b := &Box{}
	for _, k := range keys {
		if len(k) != KeySize {
			return nil, fmt.Errorf("seal: a key of %d bytes, want %d", len(k), KeySize)
		}
		block, err := aes.NewCipher(k)
		if err != nil {
			return nil, fmt.Errorf("seal: %w", err)
		}
		aead, err := cipher.NewGCMWithRandomNonce(block)
		if err != nil {
			return nil, fmt.Errorf("seal: %w", err)
		}
		made := key{aead: aead}
		sum := sha256.Sum256(append([]byte("waybill seal key id\x00"), k...))
		copy(made.id[:], sum[:])
		b.keys = append(b.keys, made)
	}
	return b, nil
}

// ParseKey reads a key as it is configured: base64 of [KeySize] bytes, as
// `openssl rand -base64 32` makes. The error does not quote it.
func ParseKey(text string) ([]byte, error) {
	k, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(k) != KeySize {
		return nil, fmt.Errorf("seal: a key is base64 of %d bytes: make one with `openssl rand -base64 %d`", KeySize, KeySize)
	}
	return k, nil
}

// Seal encrypts secret for place, which must be given to Open again.
func (b *Box) Seal(secret []byte, place string) []byte {
	k := b.keys[0]
	return k.aead.Seal(append([]byte{form}, k.id[:]...), nil, secret, []byte(place)) //nolint:gosec // nil: it makes a random nonce itself
}

// Open decrypts what was sealed for place. The error is [ErrKey] or [ErrSealed].
func (b *Box) Open(sealed []byte, place string) ([]byte, error) {
	if len(sealed) < 1+idSize || sealed[0] != form {
		return nil, ErrSealed
	}
	for _, k := range b.keys {
		if string(k.id[:]) != string(sealed[1:1+idSize]) {
			continue
		}
		secret, err := k.aead.Open(nil, nil, sealed[1+idSize:], []byte(place))
		if err != nil {
			return nil, ErrSealed
		}
		return secret, nil
	}
	return nil, ErrKey
}
