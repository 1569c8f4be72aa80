package saga

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

// operatorSetting opens all tenants' rows to a transaction; see the policies.
const operatorSetting = "waybill.operator"

// within runs fn in a transaction that sees tenant's rows, or all if it is "".
func within(ctx context.Context, db pg.Beginner, tenant string, fn func(pgx.Tx) error) error {
	if tenant != "" {
		return pg.InTenant(ctx, db, tenant, fn)
	}
	return pgx.BeginTxFunc(ctx, db, pgx.TxOptions{BeginQuery: "begin; set local " + operatorSetting + " = 'on'"}, fn)
}
