package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/alert"
	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/incident"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/logistica/analytics"
	"github.com/waybillhq/waybill/logistica/billing"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/dispatch"
	"github.com/waybillhq/waybill/logistica/faults"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/logistica/tracking"
	"github.com/waybillhq/waybill/outbox"
	"github.com/waybillhq/waybill/outbox/tables"
	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/projection"
	"github.com/waybillhq/waybill/queue"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/saga"
	sagacontracts "github.com/waybillhq/waybill/saga/contracts"
	"github.com/waybillhq/waybill/webhook"
)

// compatibility of domain events: forward so that old readers go on, backward
// so that replay works, transitive because the log holds every version.
const compatibility = "FULL_TRANSITIVE"

// product is what the roles share.
type product struct {
	contracts []*event.Contract
	outbox    *outbox.Outbox
	gate      *outbox.Gate
	notifier  *outbox.Notifier // nil unless the relay polls
	decoder   *registry.Decoder
	pushKey   [32]byte
}

// prepare brings tables, topics and schemas to what this program expects. A
// program whose schemas do not fit the registry stops here.
func (a *App) prepare(ctx context.Context) (*product, error) {
	p := &product{contracts: slices.Concat(contracts.All(), sagacontracts.All()), decoder: registry.NewDecoder(a.engines.registry), gate: a.newGate()}
	if a.polls() {
		p.notifier = outbox.NewNotifier(a.engines.db, a.log)
	}
	p.outbox = outbox.New(p.contracts, outbox.Config{Gate: p.gate, Messages: a.messages(), Notifier: p.notifier})
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.prepareDatabase(gctx, p) })
	g.Go(func() error { return a.declareTopics(gctx) })
	g.Go(func() error {
		_, err := a.engines.registry.Register(gctx, compatibility, p.contracts...)
		return namedBy(err, a.cfg.RegistryURL != "" && errors.Is(err, registry.ErrUnavailable), config.EnvRegistryURL)
	})
	return p, g.Wait()
}

func (a *App) prepareDatabase(ctx context.Context, p *product) error {
	db := a.engines.db
	if err := pg.Migrate(ctx, db, allTables()...); err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return a.openModules(gctx) })
	g.Go(func() error { return a.ensureDays(gctx) })
	g.Go(func() error { return p.outbox.Declare(gctx, db) })
	g.Go(func() (err error) { p.pushKey, err = secret(gctx, db, "push cursor"); return err })
	return g.Wait()
}

// allTables is every package's, those of the engine first.
func allTables() []pg.Migration {
	return []pg.Migration{
		incident.Migration(), webhook.Migration(), alert.Migration(), tables.Migration(), consumer.Migrations(), queue.Migration(), secretMigration(),
		saga.Migration(), tenants.Migration(), orders.Migration(), couriers.Migration(), billing.Migration(), dispatch.Migration(),
		tracking.Migration(), faults.Migration(), projection.Migration(), analytics.Migration(),
	}
}

// ensureDays makes the partitions that are written to first. Where that cannot
// be just now, as while a backup holds its locks, events go to the default
// partition and move along later: no reason not to start.
func (a *App) ensureDays(ctx context.Context) error {
	err := errors.Join(tables.EnsureDays(ctx, a.engines.db, time.Now()), consumer.EnsureDays(ctx, a.engines.db),
		webhook.EnsureDays(ctx, a.engines.db), a.eventLog().EnsureDays(ctx, time.Now()))
	if err != nil && ctx.Err() == nil {
		a.log.WarnContext(ctx, "partitions of today are not there yet", "error", err)
	}
	return ctx.Err()
}

// topics are those of the product and of the engine's own events.
func topics() []broker.Topic {
	return slices.Concat(orders.Topics(), couriers.Topics(), billing.Topics(), dispatch.Topics(), saga.Topics())
}

// declareTopics creates the topics. One that is there but differs is told and
// left as it is: an operator may have had reasons.
func (a *App) declareTopics(ctx context.Context) error {
	cl, err := a.engines.broker.Client()
	if err != nil {
		return err
	}
	defer cl.Close()
	err = broker.Declare(ctx, cl, a.engines.caps, topics()...)
	var drift *broker.DriftError
	if errors.As(err, &drift) {
		a.log.WarnContext(ctx, "topics differ from their declaration", "error", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("declare topics: %w", err)
	}
	return nil
}
