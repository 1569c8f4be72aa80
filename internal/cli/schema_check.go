package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/schemas"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/compat"
)

// checkTimeout bounds a comparison with a registry or a history.
const checkTimeout = 2 * time.Minute

func newSchemaCheck() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "check DIR",
		Short: "Compare a folder's contracts with the registry or with git; fail on a change that breaks somebody",
		Long: `Compares each contract of the folder with its earlier versions, and fails
(exit code 1) if it may not follow them. Those are what is registered, under the
subject's level there, or with --git what the folder held at a ref: each state
that ref's own line of commits left behind, all of which must stay readable both
ways (FULL_TRANSITIVE), unless --level says less. A contract that the folder
never had there is looked for in the other folders: it may have been moved.

For a build: check out the history (a shallow clone has none), then
waybill schema check --git origin/main DIR.`,
		Example: "  waybill schema check ./contracts\n  waybill schema check ./contracts --git origin/main",
		Args:    cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, false)
	ref := cmd.Flags().String("git", "", "compare with the folder's history at this ref, instead of the registry")
	asked := cmd.Flags().String("level", "", "compatibility to ask for, such as FULL_TRANSITIVE; the subject's own, or FULL_TRANSITIVE, if left out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		level, known := compat.ParseLevel(cmp.Or(*asked, string(compat.FullTransitive)))
		if !known {
			return usagef("--level %s: want one of %v", *asked, compat.Levels())
		}
		git := cmd.Flags().Changed("git")
		if git && *ref == "" {
			return usagef("--git names no ref: want one such as origin/main")
		}
		tree, err := schemas.Tree(args[0])
		if err != nil {
			return err
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), checkTimeout)
		defer cancel()
		var findings []schemas.Finding
		if git {
			findings, err = checkGit(ctx, cmd.ErrOrStderr(), tree, args[0], *ref, level)
		} else {
			err = t.withRegistry(ctx, func(ctx context.Context, c *registry.Client) error {
				findings, err = checkRegistry(ctx, c, tree, level, *asked != "")
				return err
			})
		}
		if err != nil {
			return err
		}
		if *asJSON {
			err = printJSON(cmd.OutOrStdout(), findings)
		} else {
			err = printContractFindings(cmd.OutOrStdout(), findings)
		}
		return cmp.Or(err, broken(findings))
	}
	return cmd
}

func checkGit(ctx context.Context, notes io.Writer, tree []schemas.Contract, dir, ref string, level compat.Level) ([]schemas.Finding, error) {
	earlier, skipped, err := schemas.History(ctx, dir, ref, tree)
	if err != nil {
		return nil, err
	}
	for _, commit := range skipped {
		if _, err := fmt.Fprintf(notes, "commit %s is left out: its files are no contracts\n", commit); err != nil {
			return nil, err
		}
	}
	var findings []schemas.Finding
	for _, c := range tree {
		findings = append(findings, schemas.Check(c, earlier[c.Subject], level))
		delete(earlier, c.Subject)
	}
	for _, subject := range slices.Sorted(maps.Keys(earlier)) {
		findings = append(findings, schemas.Finding{
			Subject: subject, State: schemas.Gone, Against: len(earlier[subject]), Level: level,
			Breaks: []string{}, Changes: []compat.Change{},
		})
	}
	return findings, nil
}

// checkRegistry takes the subject's own level unless one was asked for.
func checkRegistry(ctx context.Context, c *registry.Client, tree []schemas.Contract, level compat.Level, asked bool) ([]schemas.Finding, error) {
	var findings []schemas.Finding
	for _, contract := range tree {
		versions, err := c.Versions(ctx, contract.Subject)
		if err != nil {
			return nil, err
		}
		holds := level
		if len(versions) > 0 && !asked {
			text, err := c.Level(ctx, contract.Subject)
			if err != nil {
				return nil, err
			}
			var known bool
			if holds, known = compat.ParseLevel(text); !known {
				return nil, fmt.Errorf("the registry asks for compatibility %q of subject %s, which is unknown here: say --level", text, contract.Subject)
			}
		}
		earlier := make([]schemas.Earlier, 0, len(versions))
		for _, v := range versions {
			earlier = append(earlier, schemas.Earlier{Name: fmt.Sprint("version ", v.Number), Schema: v.Schema})
		}
		findings = append(findings, schemas.Check(contract, earlier, holds))
	}
	return findings, nil
}

func printContractFindings(w io.Writer, findings []schemas.Finding) error {
	rows := [][]string{{"SUBJECT", "FILE", "IT IS", "EARLIER", "LEVEL", "VERDICT"}}
	for _, f := range findings {
		verdict := "ok"
		switch {
		case f.State == schemas.Gone:
			verdict = "no longer sent"
		case len(f.Breaks) > 0:
			verdict = "BREAKS"
		}
		rows = append(rows, []string{f.Subject, cmp.Or(f.File, "-"), string(f.State), plural(f.Against, "version"), string(f.Level), verdict})
	}
	if err := table(w, rows); err != nil {
		return err
	}
	var text strings.Builder
	for _, f := range findings {
		if len(f.Changes) == 0 && len(f.Breaks) == 0 {
			continue
		}
		fmt.Fprintf(&text, "\n%s\n", f.Subject)
		writeChanges(&text, f.Changes)
		for _, b := range f.Breaks {
			fmt.Fprintf(&text, "  breaks   %s\n", b)
		}
	}
	_, err := io.WriteString(w, text.String())
	return err
}

func writeChanges(w *strings.Builder, changes []compat.Change) {
	for _, c := range changes {
		fmt.Fprintf(w, "  %-7s  %s: %s\n", c.Kind, cmp.Or(c.Path, "the record"), c.Detail)
	}
}

func broken(findings []schemas.Finding) error {
	n := 0
	for _, f := range findings {
		if len(f.Breaks) > 0 {
			n++
		}
	}
	if n == 0 {
		return nil
	}
	return fmt.Errorf("contracts that break what is written or read: %d. Mend the change as told above, or give a fact of another shape a record of another name", n)
}
