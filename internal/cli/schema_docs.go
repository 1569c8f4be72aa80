package cli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/catalogue"
	"github.com/waybillhq/waybill/internal/schemas"
	"github.com/waybillhq/waybill/registry"
)

func newSchemaDocs() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "docs [DIR]",
		Short: "Write a catalogue of events: an HTML page and an AsyncAPI document",
		Long: `Writes index.html and asyncapi.json, of a folder's contracts, or of what is
registered with what changed from version to version. A running waybill serves
the same at /catalogue.`,
		Example: "  waybill schema docs ./contracts --out ./site",
		Args:    cobra.MaximumNArgs(1),
	}
	t := targetFlags(cmd, false)
	out := cmd.Flags().String("out", ".", "folder to write to")
	title := cmd.Flags().String("title", "Events", "whose events they are")
	language := cmd.Flags().String("lang", catalogue.Languages[0], "language of the page, en or pt-BR")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if !slices.Contains(catalogue.Languages, *language) {
			return usagef("--lang %s: want one of %v", *language, catalogue.Languages)
		}
		var c *catalogue.Catalogue
		if len(args) > 0 {
			tree, err := schemas.Tree(args[0])
			if err != nil {
				return err
			}
			c = catalogue.FromTree(*title, tree)
		} else {
			ctx, cancel := context.WithTimeout(cmd.Context(), checkTimeout)
			defer cancel()
			err := t.withRegistry(ctx, func(ctx context.Context, r *registry.Client) (err error) {
				c, err = catalogue.FromRegistry(ctx, *title, r, nil)
				return err
			})
			if err != nil {
				return err
			}
		}
		return writeCatalogue(cmd, c, *out, *language)
	}
	return cmd
}

func writeCatalogue(cmd *cobra.Command, c *catalogue.Catalogue, dir, language string) error {
	var page bytes.Buffer
	if err := c.Page(&page, language); err != nil {
		return err
	}
	doc, err := c.AsyncAPI(Version, "")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // documents are for everybody to read
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{"index.html", page.Bytes()}, {"asyncapi.json", doc}} {
		path := filepath.Join(dir, f.name)
		if err := os.WriteFile(path, f.text, 0o644); err != nil { //nolint:gosec // likewise
			return err
		}
		if _, err := fmt.Fprintln(cmd.OutOrStdout(), path); err != nil {
			return err
		}
	}
	return nil
}
