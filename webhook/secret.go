package webhook

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/webhook/sign"
)

// Secret is what the receiver verifies with.
type Secret struct {
	ID        uuid.UUID
	Key       string // whsec_…, or whpk_… of a pair; never log it
	CreatedAt time.Time
	ExpiresAt *time.Time // nil: it is the one in use
}

// DefaultOverlap is how long an old secret goes on signing after a rotation.
const DefaultOverlap = 24 * time.Hour

// Bounds of a rotation.
const (
	maxOverlap = 30 * 24 * time.Hour
	maxSecrets = 4 // that sign at a time
)

// place is what a secret is sealed for: its row.
func place(tenant string, endpoint, id uuid.UUID) string {
	return tenant + "/" + endpoint.String() + "/" + id.String()
}

func (s *Store) addSecret(ctx context.Context, tx pgx.Tx, tenant string, endpoint uuid.UUID, a Algorithm) error {
	k := sign.NewHMAC()
	if a == Ed25519 {
		k = sign.NewEd25519()
	}
	if s.box == nil {
		return ErrNoKey
	}
	id := event.NewID()
	_, err := tx.Exec(ctx, `INSERT INTO webhook.secrets (tenant, endpoint, id, sealed) VALUES ($1, $2, $3, $4)`,
		tenant, endpoint, id, s.box.Seal([]byte(k.Reveal()), place(tenant, endpoint, id)))
	return err
}

// Rotate makes a new secret, which signs within some seconds. The old one signs
// too for as long as overlap says, up to 30 days: both signatures are sent
// meanwhile. With 0 it ends at once, and so do all before it: for a secret that
// leaked.
func (s *Store) Rotate(ctx context.Context, tenant string, id uuid.UUID, overlap time.Duration) ([]Secret, error) {
	if overlap < 0 || overlap > maxOverlap {
		return nil, fmt.Errorf("%w overlap %s: want 0 to %s", ErrInvalid, overlap, maxOverlap)
	}
	err := s.within(ctx, tenant, func(tx pgx.Tx) error {
		var a Algorithm
		err := tx.QueryRow(ctx, `UPDATE webhook.endpoints SET revision = revision + 1, updated_at = now()
			WHERE tenant = $1 AND id = $2 RETURNING algorithm`, tenant, id).Scan(&a)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `DELETE FROM webhook.secrets WHERE tenant = $1 AND endpoint = $2 AND expires_at <= now()`, tenant, id); err != nil {
			return err
		}
		if overlap == 0 {
			_, err = tx.Exec(ctx, `DELETE FROM webhook.secrets WHERE tenant = $1 AND endpoint = $2`, tenant, id)
		} else {
			_, err = tx.Exec(ctx, `UPDATE webhook.secrets SET expires_at = least(expires_at, now() + $3::interval)
				WHERE tenant = $1 AND endpoint = $2`, tenant, id, overlap)
		}
		if err != nil {
			return err
		}
		var n int
		if err := tx.QueryRow(ctx, `SELECT count(*) FROM webhook.secrets WHERE tenant = $1 AND endpoint = $2`, tenant, id).Scan(&n); err != nil {
			return err
		}
		if n >= maxSecrets {
			return fmt.Errorf("%w: %d secrets sign already: wait for one to expire, or end them all with an overlap of 0", ErrInvalid, n)
		}
		return s.addSecret(ctx, tx, tenant, id, a)
	})
	if err != nil {
		return nil, found(err)
	}
	return s.Secrets(ctx, tenant, id)
}

// Secrets are those that sign, the one in use first.
func (s *Store) Secrets(ctx context.Context, tenant string, id uuid.UUID) (all []Secret, err error) {
	err = s.within(ctx, tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT id, sealed, created_at, expires_at FROM webhook.secrets
			WHERE tenant = $1 AND endpoint = $2 AND coalesce(expires_at > now(), true) ORDER BY expires_at DESC NULLS FIRST`, tenant, id)
		if err != nil {
			return err
		}
		all, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (out Secret, err error) {
			var sealed []byte
			if err := row.Scan(&out.ID, &sealed, &out.CreatedAt, &out.ExpiresAt); err != nil {
				return out, err
			}
			k, err := s.open(sealed, tenant, id, out.ID)
			if err == nil {
				out.Key = k.Verification()
			}
			return out, err
		})
		return err
	})
	if err == nil && len(all) == 0 {
		err = ErrNotFound
	}
	return all, err
}

func (s *Store) open(sealed []byte, tenant string, endpoint, id uuid.UUID) (sign.Key, error) {
	if s.box == nil {
		return sign.Key{}, ErrNoKey
	}
	text, err := s.box.Open(sealed, place(tenant, endpoint, id))
	if err != nil {
		return sign.Key{}, fmt.Errorf("secret %s of endpoint %s: %w", id, endpoint, err)
	}
	return sign.ParseKey(string(text))
}
