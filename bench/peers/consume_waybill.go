package main

import (
	"context"
	"fmt"
	"os"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/consumer"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
)

const consumeWaybillPart = "consume-waybill"

// consumeConns are the connections either may open: for each of Waybill's eight
// workers, and two.
const consumeConns = 10

func waybillConsumer() consumePeer {
	return consumePeer{
		name: "waybill", part: consumeWaybillPart,
		settings: fmt.Sprintf("a consumer group as it comes: effects once, in the order of each key, 8 workers, %d connections", consumeConns),
	}
}

// consumeWaybill runs a group until ctx ends.
func consumeWaybill(ctx context.Context, group string) error {
	db, err := opened(ctx, consumeConns)
	if err != nil {
		return err
	}
	defer db.Close()
	schemas, err := registry.New(os.Getenv("WAYBILL_REGISTRY_URL"), registry.Config{}) //nolint:forbidigo // as our parent says
	if err != nil {
		return err
	}
	defer schemas.Close()
	g := consumer.New(consumer.Deps{DB: db, Client: ourBroker().Client, Decoder: registry.NewDecoder(schemas)},
		consumer.Config{Group: group, Logger: faults()})
	consumer.On(g, func(ctx context.Context, tx pgx.Tx, e event.Of[step]) error {
		_, err := tx.Exec(ctx, insertEffect, e.Data.Account, e.Data.N)
		return err
	})
	return g.Run(ctx)
}
