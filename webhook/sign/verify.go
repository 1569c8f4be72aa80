package sign

import (
	"crypto/ed25519"
	"crypto/hmac"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Why a webhook is not accepted; answer 400 or 401 to any of them.
var (
	ErrHeaders   = errors.New("webhook headers are missing or cannot be read")
	ErrTimestamp = errors.New("webhook timestamp is too far from now")
	ErrSignature = errors.New("no signature of the webhook is of a known key")
)

// Tolerance is how far a timestamp may be from the receiver's clock, either way.
const Tolerance = 5 * time.Minute

// maxSignatures bounds the work that a request can cause.
const maxSignatures = 16

// Verifier accepts what any of its keys has signed.
type Verifier struct {
	keys []Key
	// Now is the clock; time.Now if nil.
	Now func() time.Time
}

// NewVerifier takes keys as text: whsec_, whpk_, or whsk_. During a rotation
// give both, the old and the new one.
func NewVerifier(keys ...string) (*Verifier, error) {
	if len(keys) == 0 {
		return nil, fmt.Errorf("%w: give at least one", ErrKey)
	}
	v := &Verifier{}
	for _, text := range keys {
		k, err := ParseKey(text)
		if err != nil {
			return nil, err
		}
		v.keys = append(v.keys, k)
	}
	return v, nil
}

// Verify tells whether the request with headers h and this very body, byte for
// byte as it was received, is of a sender that has one of the keys. The error is
// [ErrHeaders], [ErrTimestamp] or [ErrSignature].
func (v *Verifier) Verify(h http.Header, body []byte) error {
	id, stamp := h.Get(HeaderID), h.Get(HeaderTimestamp)
	given, err := signatures(h.Get(HeaderSignature))
	if err != nil {
		return err
	}
	if id == "" || strings.ContainsRune(id, '.') {
		return fmt.Errorf("%w: %s", ErrHeaders, HeaderID)
	}
	if err := v.near(stamp); err != nil {
		return err
	}
	for _, s := range given {
		for _, k := range v.keys {
			if k.made(s, id, stamp, body) {
				return nil
			}
		}
	}
	return ErrSignature
}

func (v *Verifier) near(stamp string) error {
	seconds, err := strconv.ParseInt(stamp, 10, 64)
	if err != nil || strconv.FormatInt(seconds, 10) != stamp {
		return fmt.Errorf("%w: %s", ErrHeaders, HeaderTimestamp)
	}
	now := time.Now
	if v.Now != nil {
		now = v.Now
	}
	// In seconds, not in Durations: those of absurd stamps would overflow.
	if is := now().Unix(); seconds < is-int64(Tolerance.Seconds()) || seconds > is+int64(Tolerance.Seconds()) {
		return ErrTimestamp
	}
	return nil
}

// signature is one of the header's, decoded.
type signature struct {
	version string
	bytes   []byte
}

// signatures reads the header. What is of an unknown version, or no base64, is
// passed over, as a newer sender may add such; an empty one is no signature.
func signatures(header string) ([]signature, error) {
	var out []signature
	for i, part := range strings.Fields(header) {
		if i == maxSignatures {
			return nil, fmt.Errorf("%w: more than %d signatures", ErrHeaders, maxSignatures)
		}
		version, text, ok := strings.Cut(part, ",")
		if !ok || version != versionHMAC && version != versionEd25519 {
			continue
		}
		b, err := base64.StdEncoding.Strict().DecodeString(text)
		if err == nil && len(b) > 0 {
			out = append(out, signature{version, b})
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: %s has none of version %s or %s", ErrHeaders, HeaderSignature, versionHMAC, versionEd25519)
	}
	return out, nil
}

// made compares in full, never the bytes that happen to be there, and in
// constant time.
func (k Key) made(s signature, id, stamp string, body []byte) bool {
	switch {
	case s.version == versionHMAC && k.secret != nil:
		return hmac.Equal(s.bytes, k.mac(id, stamp, body))
	case s.version == versionEd25519 && k.public != nil:
		return len(s.bytes) == ed25519.SignatureSize && ed25519.Verify(k.public, content(id, stamp, body), s.bytes)
	}
	return false
}
