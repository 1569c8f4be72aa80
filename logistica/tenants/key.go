package tenants

import (
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/big"
	"regexp"
	"strings"

	"github.com/google/uuid"
)

const (
	keyPrefix  = "wb_"
	keySecret  = 32 // random bytes
	secretText = 43 // digits of base 62 that hold them
)

var keyForm = regexp.MustCompile(`^wb_[0-9a-z]{1,16}_[0-9A-Za-z]{43}$`)

// NewKey returns a random key such as wb_3f2a9c0151d6_…: the prefix lets secret
// scanners know it, the middle lets people tell whose it is, and by its last four
// which one. It opens nothing
// until it is given to [Directory.Seed].
func NewKey(tenant uuid.UUID) string {
	var b [keySecret]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends when there is no randomness
	var own [2]byte
	_, _ = rand.Read(own[:])
	return keyText(tenant, own[:], b[:])
}

// KeyFrom is a key that follows from a secret, for a demonstration whose keys
// are the same at its next start.
func KeyFrom(id uuid.UUID, secret [32]byte) (string, error) {
	b, err := hkdf.Key(sha256.New, secret[:], nil, "waybill api key "+id.String(), keySecret)
	if err != nil {
		return "", fmt.Errorf("derive key: %w", err)
	}
	return keyText(id, nil, b), nil
}

func keyText(id uuid.UUID, own, random []byte) string {
	digits := new(big.Int).SetBytes(random).Text(62)
	return keyPrefix + hex.EncodeToString(id[12:]) + hex.EncodeToString(own) + "_" + strings.Repeat("0", secretText-len(digits)) + digits
}

// hashKey is what is kept of a key; ok is false if it cannot be one.
func hashKey(key string) (hash [32]byte, ok bool) {
	if !keyForm.MatchString(key) {
		return hash, false
	}
	return sha256.Sum256([]byte(key)), true
}

// hintOf is the last four of a key's middle.
func hintOf(key string) string {
	middle, _, _ := strings.Cut(strings.TrimPrefix(key, keyPrefix), "_")
	return middle[max(0, len(middle)-4):]
}
