package webhook

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
)

// Update gives an endpoint new settings, but for its algorithm. Senders follow
// within some seconds. What is waiting to be sent stays, also of types it no
// longer wants.
func (s *Store) Update(ctx context.Context, tenant string, id uuid.UUID, in Settings) (Endpoint, error) {
	in.Algorithm = ""
	if err := s.check(&in); err != nil {
		return Endpoint{}, err
	}
	err := s.change(ctx, tenant, id, `url = $3, description = $4, types = $5, ordered = $6`, in.URL, in.Description, in.Types, in.Ordered)
	if err != nil {
		return Endpoint{}, err
	}
	return s.Get(ctx, tenant, id)
}

// Enable has an endpoint called again: about what comes from now on. What failed
// meanwhile is sent by [Store.Replay]. Its breaker is closed, its failures are
// forgotten.
func (s *Store) Enable(ctx context.Context, tenant string, id uuid.UUID) error {
	return s.within(ctx, tenant, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE webhook.endpoints SET state = 'enabled', reason = '', revision = revision + 1, updated_at = now()
			WHERE tenant = $1 AND id = $2`, tenant, id)
		if err == nil && tag.RowsAffected() == 0 {
			return ErrNotFound
		}
		if err == nil {
			_, err = tx.Exec(ctx, `UPDATE webhook.lanes SET failures = 0, failing_since = NULL, open_until = NULL
				WHERE tenant = $1 AND endpoint = $2`, tenant, id)
		}
		return err
	})
}

// Disable stops calling an endpoint within some seconds. What waits for it fails.
func (s *Store) Disable(ctx context.Context, tenant string, id uuid.UUID, reason string) error {
	if len(reason) > maxDescription || !plain(reason) {
		return fmt.Errorf("%w reason: want a line of at most %d bytes", ErrInvalid, maxDescription)
	}
	return s.change(ctx, tenant, id, `state = 'disabled', reason = $3`, reason)
}

func (s *Store) change(ctx context.Context, tenant string, id uuid.UUID, set string, args ...any) error {
	return s.within(ctx, tenant, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `UPDATE webhook.endpoints SET revision = revision + 1, updated_at = now(), `+set+
			` WHERE tenant = $1 AND id = $2`, append([]any{tenant, id}, args...)...)
		if err == nil && tag.RowsAffected() == 0 {
			return ErrNotFound
		}
		return err
	})
}

// Delete removes an endpoint and its secrets. Its log stays until it is pruned,
// and can no longer be asked for.
func (s *Store) Delete(ctx context.Context, tenant string, id uuid.UUID) error {
	return s.within(ctx, tenant, func(tx pgx.Tx) error {
		tag, err := tx.Exec(ctx, `DELETE FROM webhook.endpoints WHERE tenant = $1 AND id = $2`, tenant, id)
		if err == nil && tag.RowsAffected() == 0 {
			return ErrNotFound
		}
		return err
	})
}
