package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/queue"
	"github.com/waybillhq/waybill/queue/feed"
	"github.com/waybillhq/waybill/queue/server"
)

// startQueues declares the configured queues, keeps all there are, and puts
// topics into them.
func (a *App) startQueues(ctx context.Context, p *product) error {
	for _, s := range a.cfg.Queue.Queues {
		err := queue.Declare(ctx, a.engines.db, s.Tenant, s.Name, queue.Settings{
			Lease: s.Lease, MaxDeliveries: s.MaxDeliveries, TTL: s.TTL, MaxLength: s.MaxLength,
			Dedupe: s.Dedupe, KeepDead: s.KeepDead, DeadLetter: s.DeadLetter,
		})
		if err != nil {
			return fmt.Errorf("queue.queues in the configuration: %w", err)
		}
	}
	a.stack.run(ctx, "queue keeper", queue.NewKeeper(a.engines.db, queue.KeeperConfig{Registerer: a.metrics, Logger: a.log}).Run)
	for _, f := range a.cfg.Queue.Feeds {
		if err := a.tellMissingQueue(ctx, f.Tenant, f.Queue); err != nil {
			return err
		}
		deps := feed.Deps{DB: a.engines.db, Client: a.engines.broker.Client, Decoder: p.decoder, Signals: a.queueSignals(ctx)}
		a.stack.run(ctx, "feed of queue "+f.Queue, feed.New(deps, feed.Config{
			Tenant: f.Tenant, Queue: f.Queue, Topic: f.Topic, Types: f.Types, JSON: f.JSON, KeyGroups: f.KeyGroups, Logger: a.log,
		}).Run)
	}
	return nil
}

// tellMissingQueue is no error: a feed waits for its queue. But a name that was
// mistyped would wait for ever.
func (a *App) tellMissingQueue(ctx context.Context, tenant, name string) error {
	there, err := queue.List(ctx, a.engines.db, tenant)
	if err == nil && !slices.ContainsFunc(there, func(i queue.Info) bool { return i.Name == name }) {
		a.log.WarnContext(ctx, "a feed waits for a queue that is not there: declare it under queue.queues, or waybill queue create", "queue", name, "tenant", tenant)
	}
	return err
}

// queueSignals are one for the whole program: they hold a connection.
func (a *App) queueSignals(ctx context.Context) *queue.Signals {
	if a.signals == nil {
		a.signals = queue.NewSignals(a.engines.db, a.log)
		a.stack.run(ctx, "queue signals", a.signals.Run)
	}
	return a.signals
}

// withQueues puts the queues' addresses before the product's. They have bounds
// of their own: a request may wait for a message.
func (a *App) withQueues(ctx context.Context, rest http.Handler, directory *tenants.Directory) (http.Handler, error) {
	queues, err := server.New(server.Deps{
		DB: a.engines.db, Signals: a.queueSignals(ctx), Logger: a.log,
		Authenticate: func(ctx context.Context, key string) (string, error) {
			t, err := directory.Authenticate(ctx, key)
			if errors.Is(err, tenants.ErrUnauthenticated) || err == nil && t.Scope != tenants.Merchant {
				return "", server.ErrKey
			}
			return t.ID.String(), err
		},
	}, server.Config{})
	if err != nil {
		return nil, err
	}
	return beneath(server.Prefix, queues, rest), nil
}
