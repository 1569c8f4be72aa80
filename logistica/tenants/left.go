package tenants

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5"
)

// Endless is what is left to a key without an end.
const Endless time.Duration = math.MaxInt64

// Left is for how long each key is good yet, by the [Tenant.Credential] that it
// was found with: 0 of one that was revoked, has ended, or never was. It asks the
// database whatever is remembered, and what is good no more is forgotten: who is
// sent away by the answer does not come back by memory.
//
// It takes one transaction with two short statements for each: row-level security
// shows it one key at a time. Ask about some hundreds at once.
func (d *Directory) Left(ctx context.Context, credentials []string) ([]time.Duration, error) {
	left := make([]time.Duration, len(credentials))
	err := pgx.BeginTxFunc(ctx, d.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		var b pgx.Batch
		for i, c := range credentials {
			hash, ok := unhex(c)
			if !ok {
				continue
			}
			b.Queue(`SELECT set_config('waybill.key_hash', $1, true)`, c)
			b.Queue(`SELECT extract(epoch FROM ends_at - now())::float8 FROM tenants.api_keys
				WHERE key_hash = $1 AND revoked_at IS NULL`, hash[:]).QueryRow(func(row pgx.Row) (err error) {
				left[i], err = remaining(row)
				return err
			})
		}
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return nil, fmt.Errorf("ask whether keys are good yet: %w", err)
	}
	for i, c := range credentials {
		if hash, ok := unhex(c); ok && left[i] <= 0 {
			d.keys.drop(hash)
		}
	}
	return left, nil
}

// remaining reads the seconds that are left to a key, if there is one.
func remaining(row pgx.Row) (time.Duration, error) {
	var seconds *float64
	switch err := row.Scan(&seconds); {
	case errors.Is(err, pgx.ErrNoRows):
		return 0, nil
	case err != nil:
		return 0, err
	case seconds == nil:
		return Endless, nil
	}
	return max(0, time.Duration(*seconds*float64(time.Second))), nil
}

func unhex(credential string) (hash [32]byte, ok bool) {
	b, err := hex.DecodeString(credential)
	if err != nil || len(b) != len(hash) {
		return hash, false
	}
	return [32]byte(b), true
}
