package saga

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/pg"
)

// sighting is what an event means to one round of one saga.
type sighting struct {
	Ref
	plan  *plan
	marks []mark
	every bool // it concerns rounds that begin later, too
}

// sightings lists the instances that an event concerns, in an order that is the
// same for all who lock several of them.
func (o *Observer) sightings(ctx context.Context, tx pgx.Tx, env *event.Envelope, e any) ([]sighting, error) {
	found := map[Ref]*sighting{}
	add := func(m mark, round int, every bool) {
		r := Ref{env.Tenant, m.plan.Name, env.Subject, round}
		if found[r] == nil {
			found[r] = &sighting{Ref: r, plan: m.plan}
		}
		found[r].marks, found[r].every = append(found[r].marks, m), found[r].every || every
	}
	var everywhere []mark
	for _, m := range o.marks[env.Type] {
		switch round := m.round(e); {
		case round > 0:
			add(m, round, false)
		case round == EveryRound:
			everywhere = append(everywhere, m)
		}
	}
	if len(everywhere) > 0 || len(found) > 1 {
		if err := o.holdAll(ctx, tx, env); err != nil {
			return nil, err
		}
	}
	for _, m := range everywhere {
		rounds, err := roundsOf(ctx, tx, env.Tenant, m.plan.Name, env.Subject)
		if err != nil {
			return nil, err
		}
		for _, round := range rounds {
			add(m, round, true)
		}
	}
	var out []sighting
	for _, s := range found {
		out = append(out, *s)
	}
	slices.SortFunc(out, func(a, b sighting) int {
		return cmp.Or(cmp.Compare(a.Saga, b.Saga), cmp.Compare(a.Round, b.Round))
	})
	return out, nil
}

const (
	actFor = `SELECT set_config($1, $2, true)`
	// hold has those who record events of a key take turns: a round that begins
	// must see what concerns every round, and be seen by it.
	hold = `SELECT pg_advisory_xact_lock(hashtextextended(concat_ws(chr(31), 'waybill saga', $1::text, $2::text, $3::text), 0))`
)

// holdAll takes the turns at an event's key for all sagas it may concern, in the
// order of their names: taken one by one as they come up, two events might wait
// for each other.
func (o *Observer) holdAll(ctx context.Context, tx pgx.Tx, env *event.Envelope) error {
	var names []string
	for _, m := range o.marks[env.Type] {
		names = append(names, m.plan.Name)
	}
	slices.Sort(names)
	var b pgx.Batch
	b.Queue(actFor, pg.TenantSetting, env.Tenant)
	for _, name := range slices.Compact(names) {
		b.Queue(hold, env.Tenant, name, env.Subject)
	}
	return tx.SendBatch(ctx, &b).Close()
}

// roundsOf lists the rounds there are of a key; the first, if there is none.
func roundsOf(ctx context.Context, tx pgx.Tx, tenant, saga, key string) ([]int, error) {
	rows, err := tx.Query(ctx, `SELECT round FROM saga.instances WHERE tenant = $1 AND saga = $2 AND key = $3 ORDER BY round`, tenant, saga, key)
	if err != nil {
		return nil, err
	}
	rounds, err := pgx.CollectRows(rows, pgx.RowTo[int])
	if len(rounds) == 0 {
		rounds = []int{1}
	}
	return rounds, err
}
