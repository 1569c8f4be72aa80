package cli

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/logistica/tenants"
)

// checkMerchant refuses whom no event is ever of: an endpoint of theirs would be
// there and never called.
func checkMerchant(ctx context.Context, db *pgxpool.Pool, id uuid.UUID) error {
	_, err := tenants.New(db, tenants.Config{CacheFor: time.Second}).Name(ctx, id)
	if errors.Is(err, tenants.ErrNotFound) {
		return tenantHint(err)
	}
	return err
}

// merchantArg reads a merchant's id; the platform has no endpoints.
func merchantArg(text string) (uuid.UUID, error) {
	id, err := uuid.Parse(text)
	if err != nil || id == tenants.Platform {
		return uuid.Nil, usagef("tenant %q: want a merchant's id as `waybill tenant create` printed it or `waybill tenant ls` lists it", text)
	}
	return id, nil
}
