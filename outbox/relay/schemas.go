package relay

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/registry"
)

// schemaIDs finds the registry's id for the fingerprint in an outbox row.
// Programs register their schemas when they start; asking again gives the same
// id, and mends a registry that was lost. For one goroutine.
type schemaIDs struct {
	db       *pgxpool.Pool
	registry Schemas
	ids      map[int64]int
}

func newSchemaIDs(db *pgxpool.Pool, registry Schemas) *schemaIDs {
	return &schemaIDs{db: db, registry: registry, ids: map[int64]int{}}
}

func (s *schemaIDs) id(ctx context.Context, fingerprint int64) (int, error) {
	if id, ok := s.ids[fingerprint]; ok {
		return id, nil
	}
	var subject, text string
	err := s.db.QueryRow(ctx, `SELECT subject, schema_text FROM waybill.outbox_contracts WHERE fingerprint = $1`,
		fingerprint).Scan(&subject, &text)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, fmt.Errorf("%w: no schema with fingerprint %d (the program that wrote it must call Outbox.Declare)", errUnfit, fingerprint)
	}
	if err != nil {
		return 0, fmt.Errorf("schema with fingerprint %d: %w", fingerprint, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	id, err := s.registry.RegisterText(ctx, subject, text)
	if errors.Is(err, registry.ErrUnavailable) || err != nil && ctx.Err() != nil {
		return 0, fmt.Errorf("%w: schema id for %s: %w", registry.ErrUnavailable, subject, err)
	}
	if err != nil {
		return 0, fmt.Errorf("%w: schema id for %s: %w", errUnfit, subject, err)
	}
	s.ids[fingerprint] = id
	return id, nil
}
