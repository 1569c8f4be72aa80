package relay

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"
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
	if err != nil {
		return 0, fmt.Errorf("schema with fingerprint %d (the program that wrote the event must call Outbox.Declare): %w", fingerprint, err)
	}
	id, err := s.registry.RegisterText(ctx, subject, text)
	if err != nil {
		return 0, fmt.Errorf("schema id for %s: %w", subject, err)
	}
	s.ids[fingerprint] = id
	return id, nil
}
