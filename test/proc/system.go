package proc

import (
	"context"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/logistica/contracts"
	"github.com/waybillhq/waybill/logistica/orders"
	"github.com/waybillhq/waybill/outbox"
)

// DemoTenant is the merchant whose key is DemoKey.
var DemoTenant = uuid.MustParse("0190f5e0-0000-7000-8000-000000000001")

// Search are the states that an order passes while a courier is found for it.
// Nobody may move it there by HTTP.
var Search = []string{"ASSIGNING", "ASSIGNED"}

// AsSystem moves an order of the demonstration's merchant as the search for a
// courier does, in the program's own database, for tests without couriers. It
// gives the order's version.
func (w *Waybill) AsSystem(ctx context.Context, id string, to ...string) (version int64, err error) {
	order, err := uuid.Parse(id)
	if err != nil {
		return 0, fmt.Errorf("move order %q: %w", id, err)
	}
	pool, err := pgxpool.New(ctx, w.Database)
	if err != nil {
		return 0, fmt.Errorf("open the program's database: %w", err)
	}
	defer pool.Close()
	store := orders.New(pool, outbox.New(contracts.All(), outbox.Config{}), orders.Config{})
	for _, state := range to {
		o, err := store.Transition(ctx, DemoTenant, order, orders.Move{To: orders.State(state), Actor: orders.System})
		if err != nil {
			return 0, err
		}
		version = o.Version
	}
	return version, nil
}
