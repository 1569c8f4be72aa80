package tenants

import (
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"
)

func TestWhatIsLeftToKeysIsTold(t *testing.T) {
	t.Parallel()
	pool := newPool(t)
	var changed atomic.Int32
	here, elsewhere := New(pool, Config{Changed: func() { changed.Add(1) }}), New(pool, Config{})
	var credentials []string
	borne := func(key string) Tenant {
		found, err := elsewhere.Authenticate(t.Context(), key)
		if err != nil {
			t.Fatal(err)
		}
		credentials = append(credentials, found.Credential)
		return found
	}
	lasting, lastingKey, _ := issue(t, here, "Padaria")
	borne(lastingKey)
	gone, goneKey, goneID := issue(t, here, "Pizzaria")
	borne(goneKey)
	rotated, rotatedKey, rotatedID := issue(t, here, "Quitanda")
	if found := borne(rotatedKey); !found.Ends.IsZero() {
		t.Errorf("a key without an end ends at %s", found.Ends)
	}
	left := func() []time.Duration {
		l, err := elsewhere.Left(t.Context(), append(credentials, "", "zz", credentials[0][2:]+"00"))
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	if got := left(); !slices.Equal(got, []time.Duration{Endless, Endless, Endless, 0, 0, 0}) {
		t.Errorf("of fresh keys %v", got)
	}

	if err := here.RevokeKey(t.Context(), gone.ID, goneID); err != nil {
		t.Fatal(err)
	}
	next, err := here.Rotate(t.Context(), rotated.ID, rotatedID, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	if changed.Load() != 2 {
		t.Errorf("told of %d changes, want 2", changed.Load())
	}
	if _, err := elsewhere.Authenticate(t.Context(), goneKey); err != nil {
		t.Fatalf("it is not remembered: %v", err)
	}
	got := left()
	if got[0] != Endless || got[1] != 0 || got[2] <= 0 || got[2] > time.Hour {
		t.Errorf("after a revocation and a rotation %v", got)
	}
	if _, err := elsewhere.Authenticate(t.Context(), goneKey); !errors.Is(err, ErrUnauthenticated) {
		t.Errorf("what is good no more is remembered: %v", err)
	}
	found, err := here.Authenticate(t.Context(), rotatedKey)
	if err != nil || found.Ends.IsZero() || time.Until(found.Ends) > time.Hour {
		t.Errorf("a rotated key ends at %s, %v", found.Ends, err)
	}
	if successor := borne(next.Secret); successor.Credential == found.Credential || !successor.Ends.IsZero() {
		t.Errorf("its successor is %+v", successor)
	}
	if lasting.Credential != "" {
		t.Errorf("a tenant that no key found has the credential %q", lasting.Credential)
	}
}
