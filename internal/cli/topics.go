package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/broker"
)

func newTopics() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "topics [TOPIC...]",
		Short: "List topics with their records and retention",
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, false)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
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
		topics, err := broker.ListTopics(ctx, cl, args...)
		if err != nil {
			return err
		}
		for _, name := range args {
			if err := hasTopic(topics, name); err != nil {
				return err
			}
		}
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), topics)
		}
		return table(cmd.OutOrStdout(), topicRows(topics))
	}
	cmd.AddCommand(newTopicsCreate())
	return cmd
}

func topicRows(topics []broker.TopicInfo) [][]string {
	rows := [][]string{{"TOPIC", "PARTITIONS", "RECORDS", "CLEANUP", "RETENTION", "SIZE LIMIT"}}
	for _, t := range topics {
		if t.Error != "" {
			rows = append(rows, []string{t.Name, "error: " + t.Error})
			continue
		}
		kept := "unknown"
		if d, ok := t.Retention(); ok {
			kept = duration(d)
		}
		limit := "unknown"
		if t.RetentionBytes != nil {
			if limit = "none"; *t.RetentionBytes >= 0 {
				limit = size(*t.RetentionBytes) + "/partition"
			}
		}
		rows = append(rows, []string{t.Name, strconv.Itoa(t.Partitions), number(t.Records), t.Cleanup, kept, limit})
	}
	return rows
}

func newTopicsCreate() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "create TOPIC",
		Short: "Create a topic for messages of your own",
		Args:  cobra.ExactArgs(1),
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, false)
	partitions := cmd.Flags().Int32("partitions", 4, "number of partitions")
	retention := cmd.Flags().Duration("retention", 0, "how long records are kept, 0 for the broker's default, -1s for ever")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		ctx, cancel := context.WithTimeout(cmd.Context(), askTimeout)
		defer cancel()
		if *partitions < 1 || *partitions > 1024 {
			return usagef("--partitions %d: want 1 to 1024", *partitions)
		}
		if *retention < 0 && *retention != -time.Second {
			return usagef("--retention %s: want a duration such as 24h, 0 for the broker's default, or -1s for ever", *retention)
		}
		if err := t.resolve(); err != nil {
			return err
		}
		cl, err := t.client(ctx)
		if err != nil {
			return err
		}
		defer cl.Close()
		before, err := broker.ListTopics(ctx, cl, args[0])
		if err != nil {
			return err
		}
		made := hasTopic(before, args[0]) != nil
		topic := broker.Topic{Name: args[0], Partitions: *partitions, Retention: *retention}
		if err := broker.Declare(ctx, cl, broker.Kafka(), topic); err != nil {
			return err
		}
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), map[string]any{"topic": args[0], "made": made})
		}
		text := "is there already, as asked for"
		if made {
			text = "is made"
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "topic %s %s\n", args[0], text)
		return err
	}
	return cmd
}
