package couriers

import (
	"context"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/logistica/tenants"
)

// Keys keeps the API keys of couriers.
type Keys interface {
	SeedCourier(ctx context.Context, courier uuid.UUID, key string) error
}

// Enrolment is a courier and whom they ride for.
type Enrolment struct {
	ID      uuid.UUID
	Name    string
	Phone   string // may be empty; never published
	Vehicle Vehicle
	Tenants []uuid.UUID
	Key     string // one of form tenants.NewKey; a new one is made if empty
}

const maxText = 120

// Enroll makes sure that a courier exists as described, rides for the tenants
// named and has the key, which it returns. Done again with the same id it
// changes name, phone and vehicle, adds tenants and leaves duty, version and
// other keys as they are. A courier begins OFFLINE, at version 0.
func (m *Module) Enroll(ctx context.Context, keys Keys, e Enrolment) (key string, err error) {
	if err := e.validate(); err != nil {
		return "", err
	}
	now := m.clock()
	err = m.asCourier(ctx, e.ID, func(tx pgx.Tx) error {
		var b pgx.Batch
		b.Queue(`INSERT INTO couriers.couriers (id, name, phone, vehicle_type, state, version, created_at, updated_at)
			VALUES ($1, $2, $3, $4, 'OFFLINE', 0, $5, $5)
			ON CONFLICT (id) DO UPDATE SET name = excluded.name, phone = excluded.phone, vehicle_type = excluded.vehicle_type`,
			e.ID, e.Name, e.Phone, string(e.Vehicle), now)
		b.Queue(`INSERT INTO couriers.courier_tenant (tenant, courier) SELECT t, $1 FROM unnest($2::uuid[]) AS t
			ON CONFLICT DO NOTHING`, e.ID, e.Tenants)
		return tx.SendBatch(ctx, &b).Close()
	})
	if err != nil {
		return "", fmt.Errorf("enrol courier %s: %w", e.ID, err)
	}
	if e.Key == "" {
		e.Key = tenants.NewKey(e.ID)
	}
	if err := keys.SeedCourier(ctx, e.ID, e.Key); err != nil {
		return "", fmt.Errorf("key of courier %s: %w", e.ID, err)
	}
	return e.Key, nil
}

func (e *Enrolment) validate() error {
	switch {
	case e.ID == uuid.Nil:
		return fmt.Errorf("enrol courier: an id is required")
	case strings.TrimSpace(e.Name) == "", utf8.RuneCountInString(e.Name) > maxText, len(e.Phone) > maxText:
		return fmt.Errorf("enrol courier %s: a name has between 1 and %d characters, a phone number at most as many", e.ID, maxText)
	}
	switch e.Vehicle {
	case "MOTORBIKE", "BICYCLE", "CAR":
		return nil
	default:
		return fmt.Errorf("enrol courier %s: a vehicle is MOTORBIKE, BICYCLE or CAR, not %.20q", e.ID, e.Vehicle)
	}
}
