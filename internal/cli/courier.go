package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/logistica/couriers"
	"github.com/waybillhq/waybill/logistica/tenants"
)

func newCourier() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "courier",
		Short: "Enrol couriers, and see who rides for a merchant",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCourierAdd(), newCourierLs())
	return cmd
}

// enrolled is a courier as it is shown once, with the key.
type enrolled struct {
	ID      uuid.UUID        `json:"id"`
	Name    string           `json:"name"`
	Vehicle couriers.Vehicle `json:"vehicle"`
	Tenants []uuid.UUID      `json:"tenants"`
	Key     string           `json:"key"`
}

func newCourierAdd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME",
		Short: "Make a courier who rides for merchants, with an API key, which is shown this once",
		Long: `Make a courier who rides for merchants, with an API key, which is shown this once.
The key opens the page /courier#key=KEY. With --id the courier is there already:
name and vehicle become what is said, merchants are added, and the key is one more.`,
		Example: `  waybill courier add "Rui Alves" --tenant 0190f5e0-0000-7000-8000-000000000001
  waybill courier add "Rui Alves" --id COURIER --tenant ANOTHER`,
		Args: cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	f := cmd.Flags()
	vehicle := f.String("vehicle", "MOTORBIKE", "MOTORBIKE, BICYCLE or CAR")
	phone := f.String("phone", "", "telephone number, which no event carries")
	id := f.String("id", "", "of a courier who is there already")
	merchants := f.StringArray("tenant", nil, "merchant they ride for; may be given several times")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		e := couriers.Enrolment{ID: event.NewID(), Name: args[0], Phone: *phone, Vehicle: couriers.Vehicle(*vehicle)}
		var err error
		if *id != "" {
			if e.ID, err = uuid.Parse(*id); err != nil {
				return usagef("--id %q: want a courier's id, as `waybill courier ls TENANT` lists them", *id)
			}
		}
		if e.Tenants, err = merchantArgs(*merchants); err != nil {
			return err
		}
		return tenantHint(withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			return addCourier(ctx, cmd, db, e, *id != "", *asJSON)
		}))
	}
	return cmd
}

func merchantArgs(texts []string) (ids []uuid.UUID, err error) {
	if len(texts) == 0 {
		return nil, usagef("for whom do they ride? give --tenant, as `waybill tenant ls` lists them")
	}
	for _, text := range texts {
		id, err := tenantArg(text)
		if err != nil {
			return nil, err
		}
		if id == tenants.Platform {
			return nil, usagef("--tenant %s: couriers ride for merchants", platformWord)
		}
		ids = append(ids, id)
	}
	return ids, nil
}

func addCourier(ctx context.Context, cmd *cobra.Command, db *pgxpool.Pool, e couriers.Enrolment, there, asJSON bool) error {
	d, m := tenants.New(db, tenants.Config{}), couriers.New(db, nil, couriers.Config{})
	for _, id := range e.Tenants {
		if _, err := d.Name(ctx, id); err != nil {
			return err
		}
	}
	if there {
		if _, err := m.Get(ctx, e.ID); err != nil {
			return courierHint(err)
		}
	}
	key, err := m.Enroll(ctx, d, e)
	if err != nil {
		return usageError{err}
	}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), enrolled{e.ID, e.Name, e.Vehicle, e.Tenants, key})
	}
	return table(cmd.OutOrStdout(), [][]string{
		{"courier", e.ID.String()}, {"name", oneLine(e.Name)}, {"vehicle", string(e.Vehicle)}, {"key", key}, {"page", "/courier#key=" + key},
	})
}

// courierHint says what to do about a courier that is not there.
func courierHint(err error) error {
	if errors.Is(err, couriers.ErrNotFound) {
		return errors.New("no such courier: `waybill courier ls TENANT` lists them, `waybill courier add NAME` makes one")
	}
	return err
}

func newCourierLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ls TENANT",
		Short: "List the couriers who ride for a merchant, by name",
		Args:  cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		tenant, err := tenantArg(args[0])
		if err != nil {
			return err
		}
		return tenantHint(withDatabase(cmd, t, func(ctx context.Context, db *pgxpool.Pool) error {
			if _, err := tenants.New(db, tenants.Config{}).Name(ctx, tenant); err != nil {
				return err
			}
			list, err := couriers.New(db, nil, couriers.Config{}).Linked(ctx, tenant)
			if err != nil {
				return err
			}
			return showCouriers(cmd, tenant, list, *asJSON)
		}))
	}
	return cmd
}

func showCouriers(cmd *cobra.Command, tenant uuid.UUID, list []couriers.Courier, asJSON bool) error {
	type row struct {
		ID      uuid.UUID        `json:"id"`
		Name    string           `json:"name"`
		Vehicle couriers.Vehicle `json:"vehicle"`
		State   couriers.State   `json:"state"`
	}
	rows, text := []row{}, [][]string{{"COURIER", "NAME", "VEHICLE", "STATE"}}
	for _, c := range list {
		rows = append(rows, row{c.ID, c.Name, c.Vehicle, c.State})
		text = append(text, []string{c.ID.String(), oneLine(c.Name), string(c.Vehicle), string(c.State)})
	}
	if asJSON {
		return printJSON(cmd.OutOrStdout(), rows)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "nobody rides for this merchant: waybill courier add NAME --tenant %s\n", tenant)
		return err
	}
	return table(cmd.OutOrStdout(), text)
}
