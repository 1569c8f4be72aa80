package pg

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Roles are those of names that the pool's user may act as, by SET ROLE. The
// rest are not there, or were not granted to it.
func Roles(ctx context.Context, pool *pgxpool.Pool, names ...string) ([]string, error) {
	rows, err := pool.Query(ctx, `SELECT rolname FROM pg_roles WHERE rolname = ANY($1) AND pg_has_role(current_user, oid, 'MEMBER')`, names)
	if err != nil {
		return nil, fmt.Errorf("which roles there are: %w", err)
	}
	roles, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, fmt.Errorf("which roles there are: %w", err)
	}
	return roles, nil
}

// Reach is what a role may read and write.
type Reach struct {
	Schemas []string         // every table in them, those made later too
	Except  []pgx.Identifier // but these
}

// Grant lets a role read and write rows within reach. It may change no table
// and sees no other schema. The pool's user owns the schemas.
func Grant(ctx context.Context, pool *pgxpool.Pool, role string, reach Reach) error {
	name := pgx.Identifier{role}.Sanitize()
	var sql strings.Builder
	// Two grants on one table at once would fail on its row of the catalogue.
	fmt.Fprintf(&sql, "SELECT pg_advisory_xact_lock(%d);\n", grantLock)
	for _, schema := range reach.Schemas {
		schema = pgx.Identifier{schema}.Sanitize()
		for _, what := range []string{
			"GRANT USAGE ON SCHEMA %s TO %s",
			"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s",
			"GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA %s TO %s",
			"ALTER DEFAULT PRIVILEGES IN SCHEMA %s GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO %s",
			"ALTER DEFAULT PRIVILEGES IN SCHEMA %s GRANT USAGE, SELECT ON SEQUENCES TO %s",
		} {
			fmt.Fprintf(&sql, what+";\n", schema, name)
		}
	}
	for _, table := range reach.Except {
		fmt.Fprintf(&sql, "REVOKE ALL ON %s FROM %s;\n", table.Sanitize(), name)
	}
	if _, err := pool.Exec(ctx, sql.String(), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("grant %s to %s: %w", strings.Join(reach.Schemas, ", "), role, err)
	}
	return nil
}

// grantLock is a lock of its own: who waits here must not be waited for by a
// migration that makes an index concurrently.
const grantLock = 7_306_041_870_194_411

// As makes a pool on the same database whose sessions act as role: what a
// statement forgot, the server refuses. The pool's user must be a member of
// role. No connection is made before one is asked for.
func As(ctx context.Context, pool *pgxpool.Pool, role string, maxConns int32) (*pgxpool.Pool, error) {
	cfg := pool.Config()
	cfg.MaxConns, cfg.MinConns, cfg.MinIdleConns = maxConns, 0, 0
	after, set := cfg.AfterConnect, "SET ROLE "+pgx.Identifier{role}.Sanitize()
	cfg.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		if after != nil {
			if err := after(ctx, c); err != nil {
				return err
			}
		}
		_, err := c.Exec(ctx, set)
		return err
	}
	as, err := pgxpool.NewWithConfig(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("pool for role %s: %w", role, err)
	}
	return as, nil
}
