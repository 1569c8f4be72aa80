package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/waybillhq/waybill/broker"
)

func newLag() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lag [GROUP...]",
		Short: "Show how far each group is behind, by partition",
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, false)
	watch := cmd.Flags().Bool("watch", false, "show again every second until Ctrl-C")
	cmd.RunE = func(cmd *cobra.Command, groups []string) error {
		if err := t.resolve(); err != nil {
			return err
		}
		cl, err := t.client(cmd.Context())
		if err != nil {
			return err
		}
		defer cl.Close()
		if !*watch {
			return showLag(cmd.Context(), cmd.OutOrStdout(), cl, *asJSON, groups)
		}
		return watchLag(cmd.Context(), cmd.OutOrStdout(), cl, *asJSON, groups)
	}
	return cmd
}

func watchLag(ctx context.Context, out io.Writer, cl *kgo.Client, asJSON bool, groups []string) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if !asJSON {
			_, _ = fmt.Fprint(out, "\x1b[H\x1b[2J", time.Now().Format(time.RFC3339), "\n\n")
		}
		if err := showLag(ctx, out, cl, asJSON, groups); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func showLag(ctx context.Context, out io.Writer, cl *kgo.Client, asJSON bool, groups []string) error {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	lags, err := broker.Lag(ctx, cl, groups...)
	if err != nil && len(lags) == 0 {
		return err
	}
	if missing := absent(groups, lags); err == nil && missing != "" {
		return fmt.Errorf("group %s does not exist or has read nothing; see waybill groups", missing)
	}
	if asJSON {
		return errors.Join(printJSON(out, lags), err)
	}
	return errors.Join(table(out, lagRows(lags)), err)
}

// absent is the first of groups without a row, empty if there is none.
func absent(groups []string, lags []broker.PartitionLag) string {
	for _, g := range groups {
		if !slices.ContainsFunc(lags, func(l broker.PartitionLag) bool { return l.Group == g }) {
			return g
		}
	}
	return ""
}

func lagRows(lags []broker.PartitionLag) [][]string {
	rows := [][]string{{"GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG"}}
	for _, l := range lags {
		committed := "none"
		if l.Committed != nil {
			committed = number(l.Committed)
		}
		lag := number(l.Lag)
		if l.Error != "" {
			lag = "unknown: " + l.Error
		}
		rows = append(rows, []string{l.Group, l.Topic, strconv.Itoa(int(l.Partition)), committed, number(l.End), lag})
	}
	return rows
}
