package app

import (
	"context"
	"crypto/rand"
	"embed"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg"
)

//go:embed migrations/*.sql
var migrations embed.FS

func secretMigration() pg.Migration {
	return pg.Migration{Package: "app", Schema: "waybill", Files: migrations}
}

// secret is the random key of that name, the same for every process on this
// database.
func secret(ctx context.Context, db *pgxpool.Pool, name string) (key [32]byte, err error) {
	fresh := make([]byte, len(key))
	_, _ = rand.Read(fresh) // never fails: the program ends when there is no randomness
	if _, err := db.Exec(ctx, `INSERT INTO waybill.secret (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING`, name, fresh); err != nil {
		return key, fmt.Errorf("make secret %q: %w", name, err)
	}
	var kept []byte
	if err := db.QueryRow(ctx, `SELECT value FROM waybill.secret WHERE name = $1`, name).Scan(&kept); err != nil {
		return key, fmt.Errorf("read secret %q: %w", name, err)
	}
	copy(key[:], kept)
	return key, nil
}
