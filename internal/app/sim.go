package app

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/sim"
	"github.com/waybillhq/waybill/logistica/tenants"
)

// startSim plays deliveries through the API, as strangers would. The first
// merchant is the demonstration's own.
func (a *App) startSim(ctx context.Context, p *product) error {
	if !a.cfg.Sim.On {
		return nil
	}
	// Their keys follow from a secret, so that a start does not add new ones.
	key, err := secret(ctx, a.engines.db, "simulation")
	if err != nil {
		return err
	}
	s, err := sim.New(&enroller{
		directory: tenants.New(a.engines.db, tenants.Config{}),
		couriers:  couriers.New(a.dbOf(RoleCouriers), p.outbox, couriers.Config{Logger: a.log}),
		secret:    key, demo: a.demoKey,
	}, sim.Config{
		URL: "http://" + a.httpAddr, Seed: 1, Speed: a.cfg.Sim.Speed, Rate: a.cfg.Sim.Rate, Couriers: a.cfg.Sim.Couriers,
		Logger: a.log,
	})
	if err != nil {
		return err
	}
	a.stack.run(ctx, "simulator", s.Run)
	return nil
}

// enroller gives the simulator's people their keys.
type enroller struct {
	directory *tenants.Directory
	couriers  *couriers.Module
	secret    [32]byte
	demo      string // key of the demonstration's merchant

	merchants []uuid.UUID
}

// simulated is the id of somebody in the simulation: kind 1 a merchant, 2 a
// courier.
func simulated(kind byte, index int) uuid.UUID {
	id := demoTenant
	id[10], id[14], id[15] = kind, byte(index>>8), byte(index)
	return id
}

func (e *enroller) Merchant(ctx context.Context, index int, name string) (string, error) {
	if index == 0 {
		e.merchants = append(e.merchants, demoTenant)
		return e.demo, nil
	}
	id := simulated(1, index)
	e.merchants = append(e.merchants, id)
	key, err := tenants.KeyFrom(id, e.secret)
	if err != nil {
		return "", err
	}
	return key, e.directory.Seed(ctx, id, name, key)
}

func (e *enroller) Courier(ctx context.Context, c sim.Courier) (string, error) {
	id := simulated(2, c.Index)
	key, err := tenants.KeyFrom(id, e.secret)
	if err != nil {
		return "", err
	}
	_, err = e.couriers.Enroll(ctx, e.directory, couriers.Enrolment{
		ID: id, Name: c.Name, Phone: c.Phone, Vehicle: couriers.Vehicle(c.Vehicle), Tenants: e.merchants, Key: key,
	})
	if err != nil {
		return "", fmt.Errorf("courier %d: %w", c.Index+1, err)
	}
	return key, nil
}
