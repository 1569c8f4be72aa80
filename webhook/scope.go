package webhook

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg"
)

// operatorSetting opens all tenants' rows to a transaction; see the policies.
const operatorSetting = "waybill.operator"

// asOperator runs fn in a transaction that sees all tenants' rows.
//
// Its statements join lists with tables that were empty a moment ago and may
// have millions of rows now. A plan that reads such a table through would be
// kept for as long as the connection; there is an index for each of them.
func asOperator(ctx context.Context, db *pgxpool.Pool, fn func(pgx.Tx) error) error {
	return pgx.BeginTxFunc(ctx, db, operatorTx, fn)
}

//nolint:gochecknoglobals // a constant
var operatorTx = pgx.TxOptions{BeginQuery: "begin; set local " + operatorSetting + " = 'on'; " +
	"set local enable_seqscan = off; set local enable_hashjoin = off; set local enable_mergejoin = off"}

// within runs fn in a transaction that sees the rows of tenant.
func (s *Store) within(ctx context.Context, tenant string, fn func(pgx.Tx) error) error {
	return pg.InTenant(ctx, s.db, tenant, fn)
}

// operatorDB begins transactions that see all rows, for package daypart, which
// moves and drops rows of all tenants.
type operatorDB struct{ *pgxpool.Pool }

// Begin implements daypart.DB.
func (db operatorDB) Begin(ctx context.Context) (pgx.Tx, error) { return db.BeginTx(ctx, operatorTx) }
