package sign

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"strings"
)

// The prefixes of keys as people see them; base64 follows.
const (
	prefixHMAC    = "whsec_"
	prefixPrivate = "whsk_"
	prefixPublic  = "whpk_"
)

// Bounds of a shared secret, in bytes, after the specification.
const (
	minSecret = 24
	maxSecret = 64
	newSecret = 32
)

// ErrKey is text that is no key. The error does not quote it: it may be a
// secret with a slip of the pen.
var ErrKey = errors.New("no webhook key")

// Key is one of three: a shared secret (whsec_), which signs and verifies, a
// private key (whsk_), which does both, or a public one (whpk_), which verifies.
type Key struct {
	secret  []byte
	private ed25519.PrivateKey
	public  ed25519.PublicKey
}

// NewHMAC makes a shared secret.
func NewHMAC() Key {
	k := Key{secret: make([]byte, newSecret)}
	_, _ = rand.Read(k.secret) // never fails
	return k
}

// NewEd25519 makes a private key.
func NewEd25519() Key {
	public, private, _ := ed25519.GenerateKey(nil) // fails only where a reader of one's own does
	return Key{private: private, public: public}
}

// ParseKey reads a key with its prefix.
func ParseKey(s string) (Key, error) {
	prefix, text, _ := strings.Cut(s, "_")
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return Key{}, fmt.Errorf("%w: what follows the prefix is not base64", ErrKey)
	}
	switch prefix + "_" {
	case prefixHMAC:
		if len(b) < minSecret || len(b) > maxSecret {
			return Key{}, fmt.Errorf("%w: a %s of %d bytes, want %d to %d", ErrKey, prefixHMAC, len(b), minSecret, maxSecret)
		}
		return Key{secret: b}, nil
	case prefixPrivate:
		return privateKey(b)
	case prefixPublic:
		if len(b) != ed25519.PublicKeySize {
			return Key{}, fmt.Errorf("%w: a %s of %d bytes, want %d", ErrKey, prefixPublic, len(b), ed25519.PublicKeySize)
		}
		return Key{public: b}, nil
	}
	return Key{}, fmt.Errorf("%w: it begins with none of %s, %s and %s", ErrKey, prefixHMAC, prefixPrivate, prefixPublic)
}

// privateKey takes the seed, or seed and public key, which must fit.
func privateKey(b []byte) (Key, error) {
	if len(b) != ed25519.SeedSize && len(b) != ed25519.PrivateKeySize {
		return Key{}, fmt.Errorf("%w: a %s of %d bytes, want %d or %d", ErrKey, prefixPrivate, len(b), ed25519.SeedSize, ed25519.PrivateKeySize)
	}
	private := ed25519.NewKeyFromSeed(b[:ed25519.SeedSize])
	public := private.Public().(ed25519.PublicKey) //nolint:forcetypeassert // documented
	if len(b) == ed25519.PrivateKeySize && !public.Equal(ed25519.PublicKey(b[ed25519.SeedSize:])) {
		return Key{}, fmt.Errorf("%w: a %s whose halves do not fit each other", ErrKey, prefixPrivate)
	}
	return Key{private: private, public: public}, nil
}

// Reveal is the key as it was parsed: for the moment of telling it to its
// owner, and for sealing it.
func (k Key) Reveal() string {
	enc := base64.StdEncoding.EncodeToString
	switch {
	case k.secret != nil:
		return prefixHMAC + enc(k.secret)
	case k.private != nil:
		return prefixPrivate + enc(k.private.Seed())
	}
	return prefixPublic + enc(k.public)
}

// Verification is what the receiver needs: the shared secret, or the public
// half of a pair.
func (k Key) Verification() string {
	if k.private != nil {
		return Key{public: k.public}.Reveal()
	}
	return k.Reveal()
}

// Signs tells whether the key can sign.
func (k Key) Signs() bool { return k.secret != nil || k.private != nil }

// String hides the key from logs and errors.
func (Key) String() string { return "[key]" }

// GoString hides it from %#v.
func (Key) GoString() string { return "[key]" }

// LogValue hides it from slog.
func (Key) LogValue() slog.Value { return slog.StringValue("[key]") }

// MarshalJSON hides it from JSON.
func (Key) MarshalJSON() ([]byte, error) { return []byte(`"[key]"`), nil }
