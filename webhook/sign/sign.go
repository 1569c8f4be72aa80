// Package sign signs webhooks and verifies them, after Standard Webhooks 1.0
// (https://www.standardwebhooks.com): three headers, of which one holds a
// signature for each key that is good at the moment. It links the standard
// library alone, so that receivers may use it too.
//
// It promises that a request is accepted only if one of its signatures is, in
// full, what one of the given keys makes of id, timestamp and body, and its
// timestamp is near; and that a key never shows itself when it is printed.
//
// It does not remember ids: a receiver that must not act twice keeps them.
package sign

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a webhook.
const (
	HeaderID        = "webhook-id"        // names the event; the same at every attempt
	HeaderTimestamp = "webhook-timestamp" // of the attempt, seconds since 1970
	HeaderSignature = "webhook-signature" // of one or more keys, blanks between
)

// The versions a signature begins with.
const (
	versionHMAC    = "v1"
	versionEd25519 = "v1a"
)

// Sign is the signature of k: its version, a comma, and base64. What is signed
// is id, timestamp and body with dots between, so id must have none.
func (k Key) Sign(id string, at time.Time, body []byte) string {
	if k.private != nil {
		return versionEd25519 + "," + base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, content(id, stamp(at), body)))
	}
	return versionHMAC + "," + base64.StdEncoding.EncodeToString(k.mac(id, stamp(at), body))
}

// Headers puts the three headers into h. Every key signs, so that a receiver
// that knows any of them is content: that is how secrets are rotated.
func Headers(h http.Header, keys []Key, id string, at time.Time, body []byte) {
	signatures := make([]string, len(keys))
	for i, k := range keys {
		signatures[i] = k.Sign(id, at, body)
	}
	h.Set(HeaderID, id)
	h.Set(HeaderTimestamp, stamp(at))
	h.Set(HeaderSignature, strings.Join(signatures, " "))
}

func stamp(at time.Time) string { return strconv.FormatInt(at.Unix(), 10) }

func content(id, stamp string, body []byte) []byte {
	b := make([]byte, 0, len(id)+len(stamp)+len(body)+2)
	b = append(append(b, id...), '.')
	b = append(append(b, stamp...), '.')
	return append(b, body...)
}

func (k Key) mac(id, stamp string, body []byte) []byte {
	m := hmac.New(sha256.New, k.secret)
	m.Write([]byte(id + "." + stamp + "."))
	m.Write(body)
	return m.Sum(nil)
}
