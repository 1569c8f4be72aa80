package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/waybillhq/waybill/registry"
)

// askAtOnce bounds how many subjects are asked about side by side.
const askAtOnce = 16

type subjectInfo struct {
	Subject  string `json:"subject"`
	Level    string `json:"level"`
	Versions int    `json:"versions"`
	Latest   int    `json:"latest"` // the latest version's number
	ID       int    `json:"id"`     // and id
	Type     string `json:"type"`   // full name of the record
	Fields   int    `json:"fields"`
	Doc      string `json:"doc,omitempty"`
}

func newSchemaLs() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "ls [PREFIX]",
		Short:   "List the registry's subjects that begin with PREFIX, with their latest version",
		Example: "  waybill schema ls orders.events",
		Args:    cobra.MaximumNArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), checkTimeout)
		defer cancel()
		prefix := ""
		if len(args) > 0 {
			prefix = args[0]
		}
		return t.withRegistry(ctx, func(ctx context.Context, c *registry.Client) error {
			all, err := subjects(ctx, c, prefix)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), all)
			}
			if len(all) == 0 {
				_, err := fmt.Fprintln(cmd.OutOrStdout(), "no subjects; register a folder's contracts: waybill schema register DIR")
				return err
			}
			rows := [][]string{{"SUBJECT", "VERSIONS", "LATEST", "ID", "LEVEL", "FIELDS", "WHAT"}}
			for _, s := range all {
				rows = append(rows, []string{
					s.Subject, fmt.Sprint(s.Versions), fmt.Sprint(s.Latest), fmt.Sprint(s.ID), s.Level, fmt.Sprint(s.Fields), oneLine(s.Doc),
				})
			}
			return table(cmd.OutOrStdout(), rows)
		})
	}
	return cmd
}

func subjects(ctx context.Context, c *registry.Client, prefix string) ([]subjectInfo, error) {
	names, err := c.Subjects(ctx, prefix)
	if err != nil {
		return nil, err
	}
	out := make([]subjectInfo, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(askAtOnce)
	for i, name := range names {
		g.Go(func() (err error) {
			out[i], err = describeSubject(ctx, c, name)
			return err
		})
	}
	return out, g.Wait()
}

func describeSubject(ctx context.Context, c *registry.Client, name string) (subjectInfo, error) {
	level, err := c.Level(ctx, name)
	if err != nil {
		return subjectInfo{}, err
	}
	numbers, latest, err := c.Latest(ctx, name)
	if errors.Is(err, registry.ErrInvalidSchema) {
		return subjectInfo{Subject: name, Level: level, Versions: len(numbers), Latest: latest.Number, ID: latest.ID, Doc: "no Avro that is understood here"}, nil
	}
	if err != nil {
		return subjectInfo{}, err
	}
	root := latest.Schema.Root()
	typ := root.Name
	if root.Namespace != "" {
		typ = root.Namespace + "." + typ
	}
	return subjectInfo{name, level, len(numbers), latest.Number, latest.ID, or(typ, root.Type), len(root.Fields), root.Doc}, nil
}
