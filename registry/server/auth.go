package server

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"strings"
)

// Auth is who may ask a registry. The zero value lets everybody.
type Auth struct {
	Users  map[string]string // name to password, for basic authentication
	Tokens []string          // bearer tokens
}

func (a Auth) open() bool { return len(a.Users) == 0 && len(a.Tokens) == 0 }

// challenge says how to authenticate.
func (a Auth) challenge() string {
	if len(a.Users) == 0 {
		return `Bearer realm="schema registry"`
	}
	return `Basic realm="schema registry", charset="UTF-8"`
}

// check refuses a request that does not say who asks. It takes as long
// whichever name, password or token is wrong and how much of it, so that none
// can be guessed piece by piece.
func (a Auth) check(r *http.Request) error {
	if a.open() {
		return nil
	}
	right := 0
	name, password, basic := r.BasicAuth()
	for user, secret := range a.Users {
		right |= equal(name, user) & equal(password, secret) & flagOf(basic)
	}
	token, bearer := bearerOf(r)
	for _, secret := range a.Tokens {
		right |= equal(token, secret) & flagOf(bearer && secret != "")
	}
	if right == 1 {
		return nil
	}
	return refuse(http.StatusUnauthorized, "Unauthorized: send the name and password, or the token, that this registry is configured with")
}

func bearerOf(r *http.Request) (string, bool) {
	scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return strings.TrimSpace(token), ok && strings.EqualFold(scheme, "Bearer")
}

// equal compares digests, which have one length.
func equal(a, b string) int {
	x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
	return subtle.ConstantTimeCompare(x[:], y[:])
}

func flagOf(b bool) int {
	if b {
		return 1
	}
	return 0
}
