package app

import (
	"context"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

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
	pools := make([]*pgxpool.Pool, len(modules()))
	var missing []string
	g, gctx := errgroup.WithContext(ctx)
	for i, m := range modules() {
		if !slices.Contains(there, m.role()) {
			missing = append(missing, m.role())
			pools[i] = a.engines.db
			continue
		}
		g.Go(func() (err error) {
			pools[i], err = a.openModule(gctx, m)
			return err
		})
	}
	err = g.Wait()
	a.engines.modules = map[string]*pgxpool.Pool{}
	for i, m := range modules() {
		if pools[i] == nil {
			continue
		}
		a.engines.modules[m.schema] = pools[i]
		if pools[i] != a.engines.db {
			a.stack.onStop("connections of "+m.schema, func(ctx context.Context) error { closePool(ctx, pools[i]); return nil })
		}
	}
	if len(missing) > 0 {
		a.log.InfoContext(ctx, "modules act as the program's own role: to wall them off, CREATE ROLE each NOLOGIN and GRANT it to "+a.engines.db.Config().ConnConfig.User,
			"roles", missing)
	}
	return err
}

func (a *App) openModule(ctx context.Context, m module) (*pgxpool.Pool, error) {
	if err := pg.Grant(ctx, a.engines.db, m.role(), m.schema, "waybill"); err != nil {
		return nil, err
	}
	// The engine's schema, but not the keys in it.
	_, err := a.engines.db.Exec(ctx, "REVOKE ALL ON waybill.secret FROM "+pgx.Identifier{m.role()}.Sanitize())
	if err != nil {
		return nil, fmt.Errorf("keep secrets from %s: %w", m.role(), err)
	}
	return pg.As(ctx, a.engines.db, m.role(), m.connections)
}

// dbOf is the pool of a module.
func (a *App) dbOf(schema string) *pgxpool.Pool {
	return a.engines.modules[schema]
}
