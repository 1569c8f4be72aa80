package cli

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/avrogen/gen"
	"github.com/waybillhq/waybill/registry"
)

func newSchema() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "schema",
		Short: "Contracts: what events look like, and what they may become",
		Long: `Contracts are Avro schemas in *.avsc files. The record of a file says in
attributes of its own which topic carries it ("topic"), who sends it ("source"),
which field is the record's key ("key") and, if there is one, which field is the
aggregate's version ("sequence"). Its subject is TOPIC-RECORD.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newSchemaCheck(), newSchemaDiff(), newSchemaDocs(), newSchemaGenerate(), newSchemaLs(), newSchemaRegister())
	return cmd
}

// withRegistry runs do on the registry that the flags name.
func (t *target) withRegistry(ctx context.Context, do func(context.Context, *registry.Client) error) error {
	if err := t.resolve(); err != nil {
		return err
	}
	c, err := t.registryClient()
	if err != nil {
		return err
	}
	defer c.Close()
	return registryHint(do(ctx, c))
}

func newSchemaGenerate() *cobra.Command {
	return &cobra.Command{
		Use:   "generate DIR",
		Short: "Write the Go types of a folder's contracts beside them",
		Long: `Writes NAME_gen.go for each NAME.avsc of the folder, and contracts_gen.go, the
list of its contracts; files of schemas that are gone are removed. The package
is called after the folder.`,
		Example: "  waybill schema generate ./contracts",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			names, err := gen.Write(args[0])
			if err != nil {
				return err
			}
			for _, name := range names {
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), filepath.Join(args[0], name)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}
