package cli

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/broker"
)

func newGroups() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "groups",
		Short: "List consumer groups, their state and members",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newGroupsShow(), newGroupsGaps(), newGroupsReset())
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), askTimeout)
		defer cancel()
		if err := t.resolve(); err != nil {
			return err
		}
		cl, err := t.client(ctx)
		if err != nil {
			return err
		}
		defer cl.Close()
		groups, err := broker.ListGroups(ctx, cl)
		if err != nil {
			return err
		}
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), groups)
		}
		rows := [][]string{{"GROUP", "STATE", "MEMBERS", "TOPICS"}}
		for _, g := range groups {
			rows = append(rows, []string{g.Name, or(g.Error, g.State), strconv.Itoa(len(g.Members)), strings.Join(g.Topics, ", ")})
		}
		return table(cmd.OutOrStdout(), rows)
	}
	return cmd
}
