package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/internal/schemas"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/compat"
)

type registered struct {
	Subject string `json:"subject"`
	ID      int    `json:"id"`
	New     bool   `json:"new"` // it was not there before
}

func newSchemaRegister() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "register DIR",
		Short: "Register a folder's contracts; what may not follow the earlier versions is refused",
		Long: `Registers each contract of the folder under its subject. A subject without a
compatibility level of its own is given --level first. Programs register what
they were compiled with when they start; this is for registering before that, in
a deployment, or for programs of other kinds.`,
		Example: "  waybill schema register ./contracts",
		Args:    cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, false)
	level := cmd.Flags().String("level", string(compat.FullTransitive), "compatibility of subjects that have none of their own")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if _, known := compat.ParseLevel(*level); !known {
			return usagef("--level %s: want one of %v", *level, compat.Levels())
		}
		tree, err := schemas.Tree(args[0])
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), checkTimeout)
		defer cancel()
		return t.withRegistry(ctx, func(ctx context.Context, c *registry.Client) error {
			done, err := registerTree(ctx, c, tree, *level)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), done)
			}
			rows := [][]string{{"SUBJECT", "ID", ""}}
			for _, r := range done {
				what := "was there"
				if r.New {
					what = "new"
				}
				rows = append(rows, []string{r.Subject, fmt.Sprint(r.ID), what})
			}
			return table(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}

// registerTree registers all contracts or, as far as can be seen before, none.
func registerTree(ctx context.Context, c *registry.Client, tree []schemas.Contract, level string) ([]registered, error) {
	findings, err := checkRegistry(ctx, c, tree, compat.Level(strings.ToUpper(level)), false)
	if err != nil {
		return nil, err
	}
	for _, f := range findings {
		if len(f.Breaks) > 0 {
			return nil, fmt.Errorf("nothing is registered: %s may not follow what is there: %s", f.Subject, strings.Join(f.Breaks, "; "))
		}
	}
	done := make([]registered, 0, len(tree))
	var contracts []*event.Contract
	for _, s := range tree {
		contract, err := event.NewContract(s.Topic, s.Source, s.Schema)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.File, err)
		}
		there, err := c.Registered(ctx, s.Subject, s.Schema)
		if err != nil {
			return nil, err
		}
		contracts, done = append(contracts, contract), append(done, registered{Subject: s.Subject, New: !there})
	}
	ids, err := c.Register(ctx, level, contracts...)
	if err != nil {
		return nil, err
	}
	for i, contract := range contracts {
		done[i].ID = ids[contract.Fingerprint]
	}
	return done, nil
}
