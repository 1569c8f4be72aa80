package saga

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
)

// Instance is one round of a saga.
type Instance struct {
	Ref
	State         State      `json:"state"`
	Step          string     `json:"step,omitempty"`      // that is waited for
	Direction     Direction  `json:"direction,omitempty"` // whether to be done or undone
	Since         *time.Time `json:"since,omitempty"`     // it is waited for
	Asked         int        `json:"asked,omitempty"`     // how often it was asked for, since it was last resumed
	DueAt         *time.Time `json:"due_at,omitempty"`    // it is asked for next, or given up; none: never
	StartedAt     time.Time  `json:"started_at"`
	EndedAt       *time.Time `json:"ended_at,omitempty"`
	UpdatedAt     time.Time  `json:"updated_at"`
	LeftOut       int64      `json:"left_out,omitempty"` // events not kept, since they said nothing new
	CorrelationID string     `json:"correlation_id"`

	id uuid.UUID
}

// Filter chooses instances. What is left empty admits all.
type Filter struct {
	Tenant string
	Saga   string
	Key    string
	State  State
	Open   bool   // that have not ended
	Stuck  bool   // that need an operator, or wait for a step that was asked for
	After  string // begin behind the page whose Page.Next this is
	Limit  int    // default 100, at most 1000
}

// Page is some of what a filter chooses, the latest to begin first.
type Page struct {
	Instances []Instance `json:"instances"`
	Next      string     `json:"next,omitempty"` // for Filter.After; empty: there is no more
}

const instanceColumns = `id, tenant, saga, key, round, state, step, direction, asked, since, due_at, started_at, ended_at, updated_at, left_out, correlation_id`

func scanInstance(row pgx.CollectableRow) (in Instance, err error) {
	var since time.Time
	err = row.Scan(&in.id, &in.Tenant, &in.Saga, &in.Key, &in.Round, &in.State, &in.Step, &in.Direction, &in.Asked, &since,
		&in.DueAt, &in.StartedAt, &in.EndedAt, &in.UpdatedAt, &in.LeftOut, &in.CorrelationID)
	if !in.State.Ended() {
		in.Since = &since
	} else {
		in.Direction = ""
	}
	for _, t := range []*time.Time{in.Since, in.DueAt, &in.StartedAt, in.EndedAt, &in.UpdatedAt} {
		if t != nil {
			*t = t.UTC()
		}
	}
	return in, err
}

const (
	defaultLimit = 100
	maxLimit     = 1000
)

// List lists instances.
func List(ctx context.Context, db pg.Beginner, f Filter) (Page, error) {
	if f.Limit <= 0 {
		f.Limit = defaultLimit
	}
	f.Limit = min(f.Limit, maxLimit)
	after := uuid.Max
	if f.After != "" {
		var err error
		if after, err = uuid.Parse(f.After); err != nil {
			return Page{}, fmt.Errorf("%w: %q is no place to go on from: give what the page before called next", ErrInvalid, f.After)
		}
	}
	page := Page{Instances: []Instance{}}
	err := within(ctx, db, f.Tenant, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, `SELECT `+instanceColumns+` FROM saga.instances
			WHERE ($1::text = '' OR tenant = $1) AND ($2::text = '' OR saga = $2) AND ($3::text = '' OR key = $3) AND ($4::text = '' OR state = $4)
				AND (NOT $5 OR ended_at IS NULL) AND (NOT $6 OR state = 'needs_operator' OR (ended_at IS NULL AND asked > 0))
				AND id < $7
			ORDER BY id DESC LIMIT $8`, f.Tenant, f.Saga, f.Key, string(f.State), f.Open, f.Stuck, after, f.Limit+1)
		if err != nil {
			return err
		}
		page.Instances, err = pgx.AppendRows(page.Instances, rows, scanInstance)
		return err
	})
	if err != nil {
		return Page{}, fmt.Errorf("list sagas: %w", err)
	}
	if len(page.Instances) > f.Limit {
		page.Instances = page.Instances[:f.Limit]
		page.Next = page.Instances[f.Limit-1].id.String()
	}
	return page, nil
}
