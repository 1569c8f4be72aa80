package pg

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
)

// TenantSetting is the setting that row-level security policies compare with:
//
//	USING (tenant = current_setting('waybill.tenant', true))
//
// Outside a tenant's transaction it is NULL or "", and matches nothing.
const TenantSetting = "waybill.tenant"

// ErrTenant is a tenant that cannot name one: empty, longer than 255 bytes, or
// not text.
var ErrTenant = errors.New("invalid tenant")

// Beginner starts transactions: a pool or a connection.
type Beginner interface {
	BeginTx(ctx context.Context, opts pgx.TxOptions) (pgx.Tx, error)
}

// InTenant runs fn in a transaction that acts for tenant, and commits it if fn
// returns nil. The setting rides on BEGIN, so that it costs no round trip, and
// ends with the transaction: the pool's next user does not inherit it.
func InTenant(ctx context.Context, db Beginner, tenant string, fn func(pgx.Tx) error) error {
	if err := checkTenant(tenant); err != nil {
		return err
	}
	opts := pgx.TxOptions{BeginQuery: "begin; set local " + TenantSetting + " = " + literal(tenant)}
	return pgx.BeginTxFunc(ctx, db, opts, fn)
}

// Batcher sends batches: a pool or a connection.
type Batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// BatchInTenant runs what queue puts into a batch as one transaction that acts
// for tenant, in a single round trip: statements sent together, with no BEGIN
// among them, commit or fail together. It fits where no statement depends on
// the answer to another, and costs a third of what [InTenant] does.
func BatchInTenant(ctx context.Context, db Batcher, tenant string, queue func(*pgx.Batch) error) error {
	if err := checkTenant(tenant); err != nil {
		return err
	}
	var b pgx.Batch
	b.Queue("select set_config($1, $2, true)", TenantSetting, tenant)
	if err := queue(&b); err != nil {
		return err
	}
	return db.SendBatch(ctx, &b).Close()
}

// SetTenant makes the rest of an open transaction act for tenant.
func SetTenant(ctx context.Context, tx pgx.Tx, tenant string) error {
	if err := checkTenant(tenant); err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, "set local "+TenantSetting+" = "+literal(tenant)); err != nil {
		return fmt.Errorf("set tenant: %w", err)
	}
	return nil
}

func checkTenant(tenant string) error {
	switch {
	case tenant == "":
		return fmt.Errorf("%w: empty", ErrTenant)
	case len(tenant) > 255:
		return fmt.Errorf("%w: %d bytes, at most 255", ErrTenant, len(tenant))
	case !utf8.ValidString(tenant), strings.ContainsRune(tenant, 0):
		return fmt.Errorf("%w: not text", ErrTenant)
	}
	return nil
}

// literal is s as an SQL string. The E form means the same whatever the
// session's standard_conforming_strings says.
func literal(s string) string {
	return "E'" + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(s) + "'"
}
