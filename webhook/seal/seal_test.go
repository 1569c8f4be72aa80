package seal

import (
	"bytes"
	"errors"
	"strings"
	"testing"
)

var (
	oldKey = bytes.Repeat([]byte{1}, KeySize)
	newKey = bytes.Repeat([]byte{2}, KeySize)
)

func box(t *testing.T, keys ...[]byte) *Box {
	t.Helper()
	b, err := New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestASecretOpensInItsPlaceOnly(t *testing.T) {
	b := box(t, oldKey)
	sealed := b.Seal([]byte("secret"), "tenant-a/1")
	if got, err := b.Open(sealed, "tenant-a/1"); err != nil || string(got) != "secret" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := b.Open(sealed, "tenant-b/1"); !errors.Is(err, ErrSealed) {
		t.Errorf("elsewhere: %v", err)
	}
	if bytes.Contains(sealed, []byte("secret")) || bytes.Equal(sealed, b.Seal([]byte("secret"), "tenant-a/1")) {
		t.Error("it is to be read, or to be recognised")
	}
	for i := range sealed {
		bad := bytes.Clone(sealed)
		bad[i] ^= 1
		if _, err := b.Open(bad, "tenant-a/1"); err == nil {
			t.Errorf("it opens with byte %d changed", i)
		}
		if _, err := b.Open(sealed[:i], "tenant-a/1"); err == nil {
			t.Errorf("it opens cut to %d bytes", i)
		}
	}
}

func TestAKeyIsReplacedByPuttingAnotherBeforeIt(t *testing.T) {
	sealed := box(t, oldKey).Seal([]byte("secret"), "p")
	both := box(t, newKey, oldKey)
	if got, err := both.Open(sealed, "p"); err != nil || string(got) != "secret" {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := box(t, newKey).Open(sealed, "p"); !errors.Is(err, ErrKey) {
		t.Errorf("%v", err)
	}
	if got, err := box(t, newKey).Open(both.Seal([]byte("again"), "p"), "p"); err != nil || string(got) != "again" {
		t.Errorf("%q, %v: the first key is not the one that seals", got, err)
	}
}

func TestKeysAreReadOrRefusedWithoutBeingQuoted(t *testing.T) {
	if k, err := ParseKey("AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="); err != nil || !bytes.Equal(k, oldKey) {
		t.Errorf("%v", err)
	}
	for _, bad := range []string{"", "short-secret", "AQEBAQ=="} {
		if _, err := ParseKey(bad); err == nil || bad != "" && strings.Contains(err.Error(), bad) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	if _, err := New(); err == nil {
		t.Error("a box without a key")
	}
	if _, err := New([]byte("short")); err == nil {
		t.Error("a box with a short key")
	}
}
