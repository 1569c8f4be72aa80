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

// Grant lets a role read and write the rows of every table in schemas, those
// that the pool's user makes later too. It may change no table and sees no
// other schema. The pool's user owns the schemas.
func Grant(ctx context.Context, pool *pgxpool.Pool, role string, schemas ...string) error {
	to := " TO " + pgx.Identifier{role}.Sanitize()
	var sql strings.Builder
	for _, name := range schemas {
		in := " IN SCHEMA " + pgx.Identifier{name}.Sanitize()
		for _, statement := range []string{
			"GRANT USAGE ON SCHEMA " + pgx.Identifier{name}.Sanitize() + to,
			"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES" + in + to,
			"GRANT USAGE, SELECT ON ALL SEQUENCES" + in + to,
			"ALTER DEFAULT PRIVILEGES" + in + " GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES" + to,
			"ALTER DEFAULT PRIVILEGES" + in + " GRANT USAGE, SELECT ON SEQUENCES" + to,
		} {
			sql.WriteString(statement + ";\n")
		}
	}
	if _, err := pool.Exec(ctx, sql.String(), pgx.QueryExecModeSimpleProtocol); err != nil {
		return fmt.Errorf("grant %s to %s: %w", strings.Join(schemas, ", "), role, err)
	}
	return nil
}

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
