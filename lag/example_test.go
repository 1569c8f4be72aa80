package lag_test

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/broker"
	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/lag"
	"github.com/waybillhq/waybill/registry"
)

// A program whose handlers wait for others has as many of them at once as its
// lag asks for. The pool has a connection for each, and two.
func ExampleNewAutoscaler() {
	run := func(ctx context.Context, pool *pgxpool.Pool, b broker.Config, decoder *registry.Decoder) error {
		g := consumer.New(consumer.Deps{DB: pool, Client: b.Client, Decoder: decoder}, consumer.Config{Group: "billing"})
		// consumer.On(g, …)
		s, err := lag.NewAutoscaler(
			lag.AutoscalerDeps{Workers: g, DB: pool, Client: b.Client},
			lag.AutoscalerConfig{Group: "billing", ScalerConfig: lag.ScalerConfig{Min: 4, Max: 14}})
		if err != nil {
			return err
		}
		both, ctx := errgroup.WithContext(ctx)
		both.Go(func() error { return g.Run(ctx) })
		both.Go(func() error { return s.Run(ctx) })
		return both.Wait()
	}
	_ = run
}
