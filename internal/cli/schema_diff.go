package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/internal/schemas"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/registry/compat"
)

type schemaDiff struct {
	Subject     string          `json:"subject"`
	From        string          `json:"from"`
	To          string          `json:"to"`
	Changes     []compat.Change `json:"changes"`
	NewReadsOld bool            `json:"new_reads_old"`
	OldReadsNew bool            `json:"old_reads_new"`
	Why         []string        `json:"why,omitempty"` // of what is false above
}

func newSchemaDiff() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff SUBJECT [FROM [TO]]",
		Short: "Show what changed between two versions of a subject, and who can read whom",
		Long: `Shows what was added, removed and changed from version FROM to version TO of a
subject in the registry, and whether programs at one read what the other wrote.
Without numbers: the latest and the one before it. With --with, TO is the
folder's contract, which need not be registered.`,
		Example: "  waybill schema diff orders.events-logistica.orders.OrderCreated 1 3\n" +
			"  waybill schema diff orders.events-logistica.orders.OrderCreated --with ./contracts",
		Args: cobra.RangeArgs(1, 3),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, false)
	with := cmd.Flags().String("with", "", "compare with the contract in this folder")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		numbers, err := versionNumbers(args[1:])
		if err != nil {
			return err
		}
		if *with != "" && len(numbers) > 1 {
			return usagef("--with names what to compare with: give FROM alone")
		}
		ctx, cancel := context.WithTimeout(cmd.Context(), checkTimeout)
		defer cancel()
		return t.withRegistry(ctx, func(ctx context.Context, c *registry.Client) error {
			d, err := diffSubject(ctx, c, args[0], numbers, *with)
			if err != nil {
				return err
			}
			if *asJSON {
				return printJSON(cmd.OutOrStdout(), d)
			}
			return printDiff(cmd.OutOrStdout(), d)
		})
	}
	return cmd
}

func versionNumbers(args []string) ([]int, error) {
	var out []int
	for _, a := range args {
		n, err := strconv.Atoi(a)
		if err != nil || n < 1 {
			return nil, usagef("version %q: want a number from 1; waybill schema ls shows the latest", a)
		}
		out = append(out, n)
	}
	return out, nil
}

func diffSubject(ctx context.Context, c *registry.Client, subject string, numbers []int, with string) (schemaDiff, error) {
	versions, err := c.Versions(ctx, subject)
	if err != nil {
		return schemaDiff{}, err
	}
	if len(versions) == 0 {
		return schemaDiff{}, fmt.Errorf("no subject %q in the registry: waybill schema ls lists them", subject)
	}
	pick := func(i, fallback int) (registry.Version, error) {
		if i >= len(numbers) {
			if fallback < 0 {
				return registry.Version{}, fmt.Errorf("subject %q has one version: there is nothing to compare it with, but for a folder's contract (--with)", subject)
			}
			return versions[fallback], nil
		}
		at := slices.IndexFunc(versions, func(v registry.Version) bool { return v.Number == numbers[i] })
		if at < 0 {
			return registry.Version{}, fmt.Errorf("subject %q has no version %d; its latest is %d", subject, numbers[i], versions[len(versions)-1].Number)
		}
		return versions[at], nil
	}
	if with != "" {
		from, err := pick(0, len(versions)-1)
		if err != nil {
			return schemaDiff{}, err
		}
		to, err := contractOf(with, subject)
		if err != nil {
			return schemaDiff{}, err
		}
		return compared(subject, fmt.Sprint("version ", from.Number), from.Schema, to.File, to.Avro), nil
	}
	from, err := pick(0, len(versions)-2)
	if err != nil {
		return schemaDiff{}, err
	}
	to, err := pick(1, len(versions)-1)
	if err != nil {
		return schemaDiff{}, err
	}
	return compared(subject, fmt.Sprint("version ", from.Number), from.Schema, fmt.Sprint("version ", to.Number), to.Schema), nil
}

func contractOf(dir, subject string) (schemas.Contract, error) {
	tree, err := schemas.Tree(dir)
	if err != nil {
		return schemas.Contract{}, err
	}
	i := slices.IndexFunc(tree, func(c schemas.Contract) bool { return c.Subject == subject })
	if i < 0 {
		return schemas.Contract{}, fmt.Errorf("no contract in %s has subject %q", dir, subject)
	}
	return tree[i], nil
}

func compared(subject, from string, a *avro.Schema, to string, b *avro.Schema) schemaDiff {
	d := schemaDiff{Subject: subject, From: from, To: to, Changes: compat.Diff(a, b)}
	v := compat.Readers(a, b)
	d.NewReadsOld, d.OldReadsNew = v.NewReadsOld == nil, v.OldReadsNew == nil
	for _, err := range []error{v.NewReadsOld, v.OldReadsNew} {
		if err != nil {
			d.Why = append(d.Why, err.Error())
		}
	}
	return d
}

func printDiff(w io.Writer, d schemaDiff) error {
	var text strings.Builder
	fmt.Fprintf(&text, "%s, from %s to %s\n", d.Subject, d.From, d.To)
	if len(d.Changes) == 0 {
		text.WriteString("  nothing that readers or writers would notice\n")
	}
	writeChanges(&text, d.Changes)
	can := map[bool]string{true: "can read", false: "CANNOT read"}
	fmt.Fprintf(&text, "\nprograms at %s %s what %s wrote\n", d.To, can[d.NewReadsOld], d.From)
	fmt.Fprintf(&text, "programs at %s %s what %s wrote\n", d.From, can[d.OldReadsNew], d.To)
	for _, why := range d.Why {
		fmt.Fprintf(&text, "  %s\n", why)
	}
	_, err := io.WriteString(w, text.String())
	return err
}
