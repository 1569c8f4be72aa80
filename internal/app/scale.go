package app

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/lag"
)

// poolConnections are the database's for all roles of a process, with as many
// workers as they have by themselves; of these, otherConnections are not for
// workers.
const (
	poolConnections  = 24
	otherConnections = 20
)

// checkScale refuses bounds for the workers of groups that no role of ours has:
// nobody would keep to them.
func checkScale(c config.Scale) error {
	for _, name := range slices.Sorted(maps.Keys(c.Groups)) {
		if name != RoleAnalytics && c.Groups[name].Workers.Follow {
			return fmt.Errorf("scale.groups.%s.workers: bounds are kept for the group %s alone, which Waybill runs with workers itself (feeds of queues have none): a program of yours keeps its own with lag.NewAutoscaler; give the number of its workers here, as in workers: 8", name, RoleAnalytics)
		}
	}
	return nil
}

// scaleOf is what is configured for a group.
func scaleOf(c config.Scale, group string) config.ScaleGoal {
	if g, own := c.Groups[group]; own {
		return g
	}
	return c.ScaleGoal
}

// ScaleGoal is what an advice for a group aims at. Of workers that follow the
// lag it counts on the most there may be, which a group that is behind soon has.
func ScaleGoal(c config.Scale, group string) lag.Goal {
	g := scaleOf(c, group)
	goal := lag.Goal{Drain: g.Drain, Min: g.Min, Max: g.Max, Workers: g.Workers.Now}
	if g.Workers.Follow {
		goal.Workers, goal.MaxWorkers = g.Workers.Max, g.Workers.Max
	}
	return goal
}

// connections is how large this process' pool is: a worker without a
// connection waits. It does not follow the number of processors: what is
// configured is refused nowhere that it was taken elsewhere.
func (a *App) connections() int32 {
	w := scaleOf(a.cfg.Scale, RoleAnalytics).Workers
	if !w.Follow || !slices.Contains(a.roles, RoleAnalytics) {
		return poolConnections
	}
	return max(poolConnections, int32(w.Max+otherConnections))
}

// checkPool refuses a pool that was widened past what the server takes: it
// would be found out under load, by everybody.
func (a *App) checkPool(ctx context.Context, db *pgxpool.Pool) error {
	has := db.Config().MaxConns
	if has <= poolConnections {
		return nil
	}
	var takes int32
	err := db.QueryRow(ctx, `SELECT current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int`).Scan(&takes)
	if err != nil {
		return fmt.Errorf("how many connections the server takes: %w", err)
	}
	for _, m := range modules() {
		has += m.connections
	}
	if has > takes {
		return fmt.Errorf("scale: workers: with max %d this process needs %d connections, and the server takes %d: lower max, or raise max_connections",
			scaleOf(a.cfg.Scale, RoleAnalytics).Workers.Max, has, takes)
	}
	a.log.InfoContext(ctx, "pool of the database", "connections", has, "why", "workers may become more")
	return nil
}

// follow has a group's workers follow its lag, where that is configured.
func (a *App) follow(ctx context.Context, g *consumer.Group, group string) error {
	goal := scaleOf(a.cfg.Scale, group)
	if !goal.Workers.Follow {
		return nil
	}
	s, err := lag.NewAutoscaler(
		lag.AutoscalerDeps{Workers: g, DB: a.engines.db, Monitor: a.monitor, Client: a.engines.broker.Client},
		lag.AutoscalerConfig{
			Group: group, Logger: a.log,
			ScalerConfig: lag.ScalerConfig{Min: goal.Workers.Min, Max: goal.Workers.Max, Goal: goal.Drain, Every: goal.Workers.Every},
		})
	if err != nil {
		return err
	}
	a.stack.run(ctx, "workers of "+group, s.Run)
	return nil
}
