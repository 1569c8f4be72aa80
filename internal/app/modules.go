package app

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg"
)

// module is a part of the product with tables of its own. It talks to the
// others by events alone, and its sessions act as a role of the database that
// reaches its own schema and the engine's: a statement that reads another's
// table is refused by the server, not by a reviewer.
type module struct {
	schema      string
	connections int32
}

// modules are those of the product. Their connections come on top of
// poolConnections, and are made only when they are used.
func modules() []module {
	return []module{
		{RoleOrders, 16}, // requests, and its group
		{RoleCouriers, 12},
		{RoleBilling, 8},
		{RoleDispatch, 8},
		{RoleTracking, 8},
	}
}

func (m module) role() string { return "waybill_" + m.schema }

func moduleRoles() (roles []string) {
	for _, m := range modules() {
		roles = append(roles, m.role())
	}
	return roles
}

// openModules gives each module its pool. Where the database has no role for
// one it acts as the program does, with a word in the log: nothing of the
// product depends on the wall.
func (a *App) openModules(ctx context.Context) error {
	there, err := pg.Roles(ctx, a.engines.db, moduleRoles()...)
	if err != nil {
		return err
	}
	var missing []string
	a.engines.modules = map[string]*pgxpool.Pool{}
	for _, m := range modules() {
		if !slices.Contains(there, m.role()) {
			missing = append(missing, m.role())
			a.engines.modules[m.schema] = a.engines.db
			continue
		}
		pool, err := a.openModule(ctx, m)
		if err != nil {
			return err
		}
		a.engines.modules[m.schema] = pool
		a.stack.onStop("connections of "+m.schema, func(ctx context.Context) error { closePool(ctx, pool); return nil })
	}
	if len(missing) > 0 {
		a.log.InfoContext(ctx, "modules act as the program's own role: to wall them off, CREATE ROLE each NOLOGIN and GRANT it to "+a.engines.db.Config().ConnConfig.User,
			"roles", missing)
	}
	return nil
}

func (a *App) openModule(ctx context.Context, m module) (*pgxpool.Pool, error) {
	// The engine's schema, but not the keys in it.
	reach := pg.Reach{Schemas: []string{m.schema, "waybill"}, Except: []pgx.Identifier{{"waybill", "secret"}}}
	if err := pg.Grant(ctx, a.engines.db, m.role(), reach); err != nil {
		return nil, err
	}
	return pg.As(ctx, a.engines.db, m.role(), m.connections)
}

// dbOf is the pool of a module.
func (a *App) dbOf(schema string) *pgxpool.Pool {
	return a.engines.modules[schema]
}
