package sign

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The vectors of the specification's own libraries.
const (
	vectorID     = "msg_p5jXN8AQM9LWM0D4loKWxJek"
	vectorBody   = `{"test": 2432232314}`
	vectorSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	vectorHMAC   = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
	vectorSeed   = "whsk_VEVTVFNJR05JTkdLRVlET05PVFVTRVRISVNGT1JBTlk="
	vectorEd     = "v1a,tQ9V2XOqn7jL/DQenEFpqIugdBVtiMmER5mhSkXBNwM0mkATuDe6KYYUuxqtaiHeYGb7KaaBRdM5WqyeFiL8Ag=="
)

var vectorTime = time.Unix(1614265330, 0)

func key(t testing.TB, text string) Key {
	t.Helper()
	k, err := ParseKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func headers(signature string) http.Header {
	h := http.Header{}
	h.Set(HeaderID, vectorID)
	h.Set(HeaderTimestamp, "1614265330")
	h.Set(HeaderSignature, signature)
	return h
}

func verifier(t testing.TB, keys ...string) *Verifier {
	t.Helper()
	v, err := NewVerifier(keys...)
	if err != nil {
		t.Fatal(err)
	}
	v.Now = func() time.Time { return vectorTime }
	return v
}

func TestSignaturesAreThoseOfTheSpecification(t *testing.T) {
	for text, want := range map[string]string{vectorSecret: vectorHMAC, vectorSeed: vectorEd} {
		k := key(t, text)
		if got := k.Sign(vectorID, vectorTime, []byte(vectorBody)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
		if err := verifier(t, k.Verification()).Verify(headers(want), []byte(vectorBody)); err != nil {
			t.Error(err)
		}
	}
}

func TestOnlyAWholeSignatureOfAKnownKeyIsAccepted(t *testing.T) {
	v := verifier(t, vectorSecret, key(t, vectorSeed).Verification())
	other := NewHMAC().Sign(vectorID, vectorTime, []byte(vectorBody))
	hmacBytes, edBytes := strings.TrimPrefix(vectorHMAC, "v1,"), strings.TrimPrefix(vectorEd, "v1a,")
	raw, _ := base64.StdEncoding.DecodeString(hmacBytes)
	short := base64.StdEncoding.EncodeToString(raw[:16])
	for header, want := range map[string]error{
		vectorHMAC:                               nil,
		vectorEd:                                 nil,
		other + " " + vectorHMAC:                 nil,
		vectorEd + " " + other:                   nil,
		"v9,abc v1,! " + vectorHMAC:              nil, // what is unknown is passed over
		"":                                       ErrHeaders,
		"v1,":                                    ErrHeaders,
		"v1a,":                                   ErrHeaders,
		"v1":                                     ErrHeaders,
		"v1, " + hmacBytes:                       ErrHeaders,
		hmacBytes:                                ErrHeaders,
		"v2," + hmacBytes:                        ErrHeaders,
		"V1," + hmacBytes:                        ErrHeaders,
		other:                                    ErrSignature,
		"v1," + short:                            ErrSignature,
		"v1a," + hmacBytes:                       ErrSignature,
		"v1," + edBytes:                          ErrSignature,
		"v1a,AAAA":                               ErrSignature,
		strings.Repeat("v1,AAAA ", 17):           ErrHeaders,
		strings.Repeat(other+" ", 15) + vectorEd: nil,
	} {
		if err := v.Verify(headers(header), []byte(vectorBody)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", header, err, want)
		}
	}
	if err := v.Verify(headers(vectorHMAC), []byte(vectorBody+" ")); !errors.Is(err, ErrSignature) {
		t.Errorf("another body: %v", err)
	}
	h := headers(vectorHMAC)
	h.Set(HeaderID, "msg_other")
	if err := v.Verify(h, []byte(vectorBody)); !errors.Is(err, ErrSignature) {
		t.Errorf("another id: %v", err)
	}
	// The dot moves from the id into the timestamp: the signed bytes are the same.
	h.Set(HeaderID, vectorID+".1614265330")
	if err := v.Verify(h, []byte(vectorBody)); !errors.Is(err, ErrHeaders) {
		t.Errorf("an id with a dot: %v", err)
	}
}

func TestOldAndFutureAndAbsurdTimestampsAreRefused(t *testing.T) {
	k := key(t, vectorSecret)
	v := verifier(t, vectorSecret)
	for shift, want := range map[time.Duration]error{
		0: nil, Tolerance: nil, -Tolerance: nil, Tolerance + time.Second: ErrTimestamp, -Tolerance - time.Second: ErrTimestamp,
	} {
		h := http.Header{}
		Headers(h, []Key{k}, vectorID, vectorTime.Add(shift), []byte(vectorBody))
		if err := v.Verify(h, []byte(vectorBody)); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", shift, err, want)
		}
	}
	for stamp, want := range map[string]error{
		"": ErrHeaders, "x": ErrHeaders, "+1614265330": ErrHeaders, "01614265330": ErrHeaders, "1614265330.0": ErrHeaders,
		"9223372036854775807": ErrTimestamp, "-9223372036854775808": ErrTimestamp, "92233720368547758080": ErrHeaders,
	} {
		h := headers(vectorHMAC)
		h.Set(HeaderTimestamp, stamp)
		if err := v.Verify(h, []byte(vectorBody)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", stamp, err, want)
		}
	}
}

func TestDuringARotationEitherSecretWillDo(t *testing.T) {
	old, next := NewHMAC(), NewEd25519()
	h := http.Header{}
	Headers(h, []Key{next, old}, vectorID, vectorTime, []byte(vectorBody))
	for _, k := range []Key{old, next} {
		if err := verifier(t, k.Verification()).Verify(h, []byte(vectorBody)); err != nil {
			t.Error(err)
		}
	}
	if err := verifier(t, NewHMAC().Reveal()).Verify(h, []byte(vectorBody)); !errors.Is(err, ErrSignature) {
		t.Error(err)
	}
}

func TestKeysAreReadOrRefusedWithoutBeingQuoted(t *testing.T) {
	for _, k := range []Key{NewHMAC(), NewEd25519()} {
		again := key(t, k.Reveal())
		if again.Reveal() != k.Reveal() || !again.Signs() {
			t.Error("a key does not survive being written down")
		}
	}
	enc := base64.StdEncoding.EncodeToString
	halves := append([]byte(strings.Repeat("s", 32)), []byte(strings.Repeat("p", 32))...)
	for _, bad := range []string{
		"", "whsec_", "whsec_!!!", "secret", "whsec_" + enc(make([]byte, 23)), "whsec_" + enc(make([]byte, 65)),
		"whsk_" + enc(make([]byte, 31)), "whpk_" + enc(make([]byte, 33)), "whxx_" + enc(make([]byte, 32)), "whsk_" + enc(halves),
	} {
		_, err := ParseKey(bad)
		if !errors.Is(err, ErrKey) {
			t.Errorf("%q: %v", bad, err)
		} else if len(bad) > 8 && strings.Contains(err.Error(), bad[6:]) {
			t.Errorf("the error quotes the key: %v", err)
		}
	}
	if _, err := NewVerifier(); !errors.Is(err, ErrKey) {
		t.Error(err)
	}
}

func TestAKeyDoesNotShowItself(t *testing.T) {
	for _, k := range []Key{NewHMAC(), NewEd25519()} {
		var log strings.Builder
		slog.New(slog.NewTextHandler(&log, nil)).InfoContext(t.Context(), "x", "key", k, "in", struct{ K Key }{k})
		asJSON, err := json.Marshal(map[string]any{"key": k, "all": []Key{k}})
		if err != nil {
			t.Fatal(err)
		}
		text := fmt.Sprintf("%v %+v %#v %s %q %s %s", k, k, k, k, []Key{k}, asJSON, log.String())
		for _, secret := range []string{k.Reveal(), k.Reveal()[6:20], fmt.Sprintf("%d", k.secret), fmt.Sprintf("%d", k.private)} {
			if secret != "[]" && strings.Contains(text, secret) {
				t.Errorf("%s", text)
			}
		}
	}
}

func TestWhatIsSignedVerifiesAndNothingElseDoes(t *testing.T) {
	ed := NewEd25519()
	rapid.Check(t, func(t *rapid.T) {
		k := Key{secret: rapid.SliceOfN(rapid.Byte(), minSecret, maxSecret).Draw(t, "secret")}
		if rapid.Bool().Draw(t, "asymmetric") {
			k = ed
		}
		id := rapid.StringMatching(`[a-z0-9-]{1,40}`).Draw(t, "id")
		body := rapid.SliceOf(rapid.Byte()).Draw(t, "body")
		h := http.Header{}
		Headers(h, []Key{k}, id, vectorTime, body)
		v := &Verifier{keys: []Key{k}, Now: func() time.Time { return vectorTime }}
		if err := v.Verify(h, body); err != nil {
			t.Fatal(err)
		}
		h.Set(HeaderSignature, h.Get(HeaderSignature)[:rapid.IntRange(0, len(h.Get(HeaderSignature))-1).Draw(t, "cut")])
		if v.Verify(h, body) == nil {
			t.Fatalf("a cut signature passes: %s", h.Get(HeaderSignature))
		}
	})
}

func FuzzSignatureHeader(f *testing.F) {
	for _, s := range []string{vectorHMAC, vectorEd, "v1,", "v1a, v1,", "v1,AAAA v2,BBBB", ",", " , ,", "v1,=", "\x00v1,AA=="} {
		f.Add(s)
	}
	v := verifier(f, vectorSecret, key(f, vectorSeed).Verification())
	f.Fuzz(func(t *testing.T, header string) {
		h := headers(header)
		err := v.Verify(h, []byte(vectorBody))
		if err == nil {
			whole := false
			for _, part := range strings.Fields(header) {
				whole = whole || part == vectorHMAC || part == vectorEd
			}
			if !whole {
				t.Fatalf("%q passes", header)
			}
		} else if !errors.Is(err, ErrHeaders) && !errors.Is(err, ErrSignature) {
			t.Fatal(err)
		}
	})
}
