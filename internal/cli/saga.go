package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/saga"
)

func newSaga() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "saga",
		Short: "Look at sagas: what services do together, how far it is, and what is stuck; resume or skip a step",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSagaLs(), newSagaShow(), newSagaResume(), newSagaSkip())
	return cmd
}

// refFlags name an instance, beside the arguments [SAGA] KEY.
type refFlags struct {
	tenant string
	round  int
}

func refFlagsOf(cmd *cobra.Command) *refFlags {
	r := &refFlags{}
	cmd.Flags().StringVar(&r.tenant, "tenant", "", "of this tenant; needed where several have the key")
	cmd.Flags().IntVar(&r.round, "round", 0, "which attempt at the key; 0: the last")
	return r
}

// find makes a name of what was given: the saga may be left out where the key
// has only one.
func (r *refFlags) find(ctx context.Context, db *pgxpool.Pool, args []string) (saga.Ref, error) {
	if r.round < 0 {
		return saga.Ref{}, usagef("--round %d: want 1 or more, or 0 for the last", r.round)
	}
	ref := saga.Ref{Tenant: r.tenant, Key: args[len(args)-1], Round: r.round}
	if len(args) == 2 {
		ref.Saga = args[0]
		return ref, nil
	}
	page, err := saga.List(ctx, db, saga.Filter{Tenant: r.tenant, Key: ref.Key, Limit: 1000})
	if err != nil {
		return ref, err
	}
	var names []string
	for _, in := range page.Instances {
		if !slices.Contains(names, in.Saga) {
			names = append(names, in.Saga)
		}
	}
	switch len(names) {
	case 0:
		return ref, sagaHint(fmt.Errorf("key %s: %w", ref.Key, saga.ErrNotFound))
	case 1:
		ref.Saga = names[0]
		return ref, nil
	}
	return ref, usagef("key %s has several sagas: say which, %s", ref.Key, strings.Join(names, " or "))
}

// sagaHint adds where to look.
func sagaHint(err error) error {
	switch {
	case errors.Is(err, saga.ErrNotFound):
		return fmt.Errorf("%w: see `waybill saga ls`; what ended is kept for 30 days by default", err)
	case errors.Is(err, saga.ErrRefused):
		return fmt.Errorf("%w; see `waybill saga show`", err)
	}
	return err
}

// askFor is the ask of whoever is at the terminal.
func askFor(reason string) (saga.Ask, error) {
	if len(reason) > maxReason {
		return saga.Ask{}, usagef("--reason: want at most %d bytes", maxReason)
	}
	return saga.Ask{By: operator(), Reason: reason}, nil
}
