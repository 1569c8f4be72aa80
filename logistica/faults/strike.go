package faults

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Fails tells whether a fault in percent strikes what id names, such as an order
// and its attempt. It says the same each time until the fault is set anew.
func (f *Flags) Fails(name string, id ...string) bool {
	on, ok := f.on(name)
	return ok && strikes(name, on, id)
}

// strikes hashes all that the decision depends on: with another seed, or by
// another fault, others are struck.
func strikes(name string, on flag, id []string) bool {
	h := sha256.New()
	part := func(s string) { // with its length: "1","23" is not "12","3"
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(s)))
		_, _ = h.Write(n[:]) // a hash never fails
		_, _ = h.Write([]byte(s))
	}
	var seed [8]byte
	binary.BigEndian.PutUint64(seed[:], uint64(on.seed))
	_, _ = h.Write(seed[:])
	part(name)
	for _, s := range id {
		part(s)
	}
	return binary.BigEndian.Uint64(h.Sum(nil))%100 < uint64(max(on.value, 0))
}

// Delay is how much longer a fault in milliseconds has something take.
func (f *Flags) Delay(name string) time.Duration {
	return time.Duration(f.Value(name)) * time.Millisecond
}

// Wait waits for d, or until ctx ends, which is then the error.
func Wait(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// Poisoned tells whether an event is among those that a fault in events took,
// and takes it if there are some to take. What was taken stays so, through every
// retry and redrive, until the fault is over, cleared or set anew.
//
// It asks the database, on a connection of its own and so beside the handler's
// transaction, which will not commit; but only while the fault is on.
func (f *Flags) Poisoned(ctx context.Context, name string, event uuid.UUID) (poisoned bool, err error) {
	if _, ok := f.on(name); !ok {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookWithin)
	defer cancel()
	err = f.pool.QueryRow(ctx, `WITH known AS (
			SELECT FROM faults.poisoned WHERE event_id = $2
				AND EXISTS (SELECT FROM faults.flags WHERE name = $1 AND `+standing+`)),
		taken AS (
			UPDATE faults.flags SET taken = taken + 1
			WHERE name = $1 AND taken < value AND `+standing+` AND NOT EXISTS (SELECT FROM known) RETURNING name),
		kept AS (
			INSERT INTO faults.poisoned (event_id) SELECT $2 FROM taken ON CONFLICT DO NOTHING)
		SELECT EXISTS (SELECT FROM known) OR EXISTS (SELECT FROM taken)`, name, event).Scan(&poisoned)
	if err != nil {
		return false, fmt.Errorf("ask fault %s: %w", name, err)
	}
	return poisoned, nil
}

// None is for what shall not fail on purpose.
type None struct{}

// Fails is false.
func (None) Fails(string, ...string) bool { return false }

// Delay is 0.
func (None) Delay(string) time.Duration { return 0 }

// Poisoned is false.
func (None) Poisoned(context.Context, string, uuid.UUID) (bool, error) { return false, nil }
