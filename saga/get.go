package saga

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

// Detail is an instance with its record.
type Detail struct {
	Instance
	Steps   []StepStanding `json:"steps"`
	Entries []Entry        `json:"entries"` // in the order in which they were seen
}

// StepStanding is what became of a step.
type StepStanding struct {
	Name string `json:"name"`
	Is   string `json:"is"` // waiting, done, failed, undoing, undone, skipped, or none: it was never done
}

// Get reads an instance with its record. Ref.Round 0 is the last round; an empty
// Ref.Tenant finds the instance whoever's it is.
func Get(ctx context.Context, db pg.Beginner, r Ref) (d Detail, err error) {
	err = within(ctx, db, r.Tenant, func(tx pgx.Tx) error {
		if r, err = find(ctx, tx, r); err != nil {
			return err
		}
		if d.Instance, err = readInstance(ctx, tx, r); err != nil {
			return err
		}
		if d.Entries, err = readEntries(ctx, tx, r); err != nil {
			return err
		}
		p, err := loadPlan(ctx, tx, r.Saga)
		if err != nil {
			return err
		}
		d.Steps = stepsOf(&p, d.Entries)
		return nil
	})
	if err != nil {
		return Detail{}, fmt.Errorf("saga %s: %w", r, err)
	}
	return d, nil
}

func readInstance(ctx context.Context, tx pgx.Tx, r Ref) (Instance, error) {
	rows, err := tx.Query(ctx, `SELECT `+instanceColumns+` FROM saga.instances`+ofInstance, r.args()...)
	if err != nil {
		return Instance{}, err
	}
	in, err := pgx.CollectExactlyOneRow(rows, scanInstance)
	if errors.Is(err, pgx.ErrNoRows) {
		err = ErrNotFound
	}
	return in, err
}

// find fills in what a person left open of an instance's name.
func find(ctx context.Context, tx pgx.Tx, r Ref) (Ref, error) {
	rows, err := tx.Query(ctx, `SELECT tenant, round FROM saga.instances
		WHERE ($1::text = '' OR tenant = $1) AND saga = $2 AND key = $3 AND ($4::integer = 0 OR round = $4::integer)
		ORDER BY round DESC, tenant LIMIT 100`, r.args()...)
	if err != nil {
		return r, err
	}
	all, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (f Ref, err error) {
		f = Ref{Saga: r.Saga, Key: r.Key}
		return f, row.Scan(&f.Tenant, &f.Round)
	})
	if err != nil {
		return r, err
	}
	if len(all) == 0 {
		return r, ErrNotFound
	}
	for _, f := range all {
		if f.Tenant != all[0].Tenant {
			return r, fmt.Errorf("%w: tenants %s and %s both have it: say whose is meant", ErrInvalid, all[0].Tenant, f.Tenant)
		}
	}
	return all[0], nil
}

// stepsOf tells what became of each step.
func stepsOf(p *plan, entries []Entry) []StepStanding {
	f, s := factsOf(p, entries), judge(p, entries)
	out := []StepStanding{}
	for i, st := range p.Steps {
		at := &f.steps[i]
		is := "none"
		switch {
		case !at.undone.IsZero():
			is = "undone"
		case !at.skippedBack.IsZero(), !at.skippedForward.IsZero() && at.done.IsZero():
			is = "skipped"
		case !at.done.IsZero() && f.back && st.Undo:
			is = "undoing"
		case !at.done.IsZero():
			is = "done"
		case failed(entries, st.Name):
			is = "failed"
		case st.Name == s.Step:
			is = "waiting"
		}
		out = append(out, StepStanding{st.Name, is})
	}
	return out
}

func failed(entries []Entry, step string) bool {
	for i := range entries {
		if entries[i].What == Failed && entries[i].Step == step {
			return true
		}
	}
	return false
}
