//go:build unix

package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg/local"
)

// askPlainly has the shared server ask for passwords as they are. The proof that
// it asks for otherwise costs a client thousands of hashes for each connection:
// under the race detector, more than most tests do with it.
func askPlainly(ctx context.Context, s *local.Server) error {
	file := filepath.Join(s.DataDir(), "pg_hba.conf")
	text, err := os.ReadFile(file) // #nosec G304 -- of a server of our own
	if err != nil {
		return fmt.Errorf("read who may connect: %w", err)
	}
	text = bytes.ReplaceAll(text, []byte("scram-sha-256"), []byte("password"))
	if err := os.WriteFile(file, text, 0o600); err != nil { // it stays its owner's
		return fmt.Errorf("write who may connect: %w", err)
	}
	conn, err := pgx.Connect(ctx, s.AdminDSN())
	if err != nil {
		return fmt.Errorf("connect to test server: %w", err)
	}
	defer func() { _ = conn.Close(ctx) }()
	if _, err := conn.Exec(ctx, `select pg_reload_conf()`); err != nil {
		return fmt.Errorf("have it heard: %w", err)
	}
	return nil
}
