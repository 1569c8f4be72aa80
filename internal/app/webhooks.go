package app

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/internal/config"
	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/tenants"
	"github.com/waybillhq/waybill/webhook"
	"github.com/waybillhq/waybill/webhook/guard"
	"github.com/waybillhq/waybill/webhook/seal"
	"github.com/waybillhq/waybill/webhook/server"
)

// hooks is what the roles webhook and api share.
type hooks struct {
	store *webhook.Store
	wake  func() // of the sender, if it runs here
}

func (a *App) webhooks() (*hooks, error) {
	if a.hooks != nil {
		return a.hooks, nil
	}
	rules, err := a.cfg.Webhooks.Guard()
	if err != nil {
		return nil, err
	}
	keys, err := a.webhookKeys()
	if err != nil {
		return nil, err
	}
	var box *seal.Box
	if len(keys) > 0 {
		if box, err = seal.New(keys...); err != nil {
			return nil, err
		}
	}
	a.hooks = &hooks{store: webhook.NewStore(a.engines.db, box, guard.New(rules), webhook.StoreConfig{})}
	return a.hooks, nil
}

// startWebhooks hands events over to endpoints, in a group's transactions, and
// calls them. Its pool is the program's own, which owns the tables: days of the
// log are made and dropped.
func (a *App) startWebhooks(ctx context.Context, p *product) error {
	h, err := a.webhooks()
	if err != nil {
		return err
	}
	sender := webhook.NewSender(h.store, webhook.Config{
		Alone: a.lock != nil && a.cfg.DatabaseURL == "", // a folder is one process's
		Wrap:  a.faultFlags(ctx).Receiver, Metrics: a.metrics, Logger: a.log,
	})
	h.wake = sender.Wake
	cfg := consumer.Config{Group: RoleWebhook, Tenants: h.store.Audience(), Metrics: a.metrics, Logger: a.log}
	a.inTurn(&cfg)
	g := consumer.New(consumer.Deps{DB: a.engines.db, Client: a.engines.broker.Client, Decoder: p.decoder}, cfg)
	told := &bodies{Decoder: p.decoder}
	for topic, types := range hooked(p.contracts) {
		webhook.On(g, h.store, topic, consumer.Filter{Types: types}, told, sender.Wake)
	}
	// The sender stops after the group: what is handed over last is sent if it can
	// be, and else after the next start.
	a.stack.run(ctx, "webhook sender", sender.Run)
	a.stack.run(ctx, RoleWebhook, g.Run)
	return nil
}

// checkWebhookKey refuses to send without a key, which would be found out by each
// endpoint. Who runs everything in one folder has one there.
func (a *App) checkWebhookKey() error {
	if a.lock == nil && len(a.cfg.Webhooks.Keys) == 0 && slices.Contains(a.roles, RoleWebhook) {
		return fmt.Errorf("%w; give it to every process that plays %s or %s, in %s or webhooks.keys", webhook.ErrNoKey, RoleWebhook, RoleAPI, config.EnvWebhookKeys)
	}
	return nil
}

// hooked is what endpoints can hear of, by topic: all events of the product but
// positions, which are telemetry and most of what there is by far.
func hooked(all []*event.Contract) map[string][]string {
	topics := map[string][]string{}
	for _, c := range all {
		if c.Type != (contracts.CourierLocationUpdated{}).EventContract().Type && !slices.Contains(topics[c.Topic], c.Type) {
			topics[c.Topic] = append(topics[c.Topic], c.Type)
		}
	}
	return topics
}

// withWebhooks puts the endpoints' addresses before the product's. A merchant
// manages its own; couriers and administrators have none.
func (a *App) withWebhooks(rest http.Handler, directory *tenants.Directory) (http.Handler, error) {
	h, err := a.webhooks()
	if err != nil {
		return nil, err
	}
	api, err := server.New(server.Deps{
		Store: h.store, Wake: h.wake, Logger: a.log,
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
	return beneath(server.Prefix, api, rest), nil
}
