package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/lag"
)

func newLag() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lag [GROUP...]",
		Short: "Show how far each group is behind, in events and in time, and what is wrong",
		Long: `Shows how far each group is behind on each partition: in events, and in time as
the age of the event it reads next (~ where it is estimated). Rates are taken
over --over. What is not known is shown as unknown, never as zero.`,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	watch := cmd.Flags().Bool("watch", false, "show again every second until Ctrl-C, with the last two minutes drawn")
	over := cmd.Flags().Duration("over", time.Second, "look twice, so long apart, for rates; 0: look once")
	cmd.RunE = func(cmd *cobra.Command, groups []string) error {
		if *over < 0 || *over > time.Hour {
			return usagef("--over %s: want a time such as 10s, or 0 to look once", *over)
		}
		m, done, err := t.monitor(cmd, groups, time.Second)
		if err != nil {
			return err
		}
		defer done()
		out := cmd.OutOrStdout()
		if *watch {
			return watchLag(cmd.Context(), out, m, *asJSON, groups)
		}
		s, err := lookOver(cmd.Context(), m, *over)
		if err != nil {
			return err
		}
		if missing := absent(groups, s); s.Error == "" && missing != "" {
			return noGroup(missing)
		}
		if *asJSON {
			return errors.Join(printJSON(out, partitions(s)), problem(s))
		}
		return errors.Join(showLag(out, s, paint(out)), problem(s))
	}
	return cmd
}

// monitor looks at the groups named, or all, at what t names. Where no database
// is to be had there is only the brokers' word.
func (t *target) monitor(cmd *cobra.Command, groups []string, every time.Duration) (m *lag.Monitor, done func(), err error) {
	if err := t.resolve(); err != nil {
		return nil, nil, err
	}
	cl, err := t.client(cmd.Context())
	if err != nil {
		return nil, nil, err
	}
	cl.Close() // it answers, which is told better than a group's being unknown
	var db *pgxpool.Pool
	if t.cfg.DatabaseURL != "" {
		if db, err = t.pool(cmd.Context()); err != nil {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "the database does not answer: places are those last committed to the broker, and parked events are not shown: %v\n", err)
		}
	}
	m, err = lag.New(lag.Deps{Client: t.brokerConfig().Client, DB: db}, lag.Config{
		Groups: groups, Every: every, Timeout: askTimeout, Reads: 5000,
		Late: t.cfg.Lag.Late, StallAfter: t.cfg.Lag.StallAfter, Logger: quiet(),
	})
	if err != nil {
		return nil, nil, err
	}
	return m, func() {
		m.Close()
		if db != nil {
			db.Close()
		}
	}, nil
}

// lookOver looks, and a second time after d, when rates are known.
func lookOver(ctx context.Context, m *lag.Monitor, d time.Duration) (*lag.Snapshot, error) {
	s := m.Look(ctx)
	if d == 0 || len(s.Groups) == 0 {
		return s, ctx.Err()
	}
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(d):
	}
	return m.Look(ctx), ctx.Err()
}

func problem(s *lag.Snapshot) error {
	if s.Error == "" {
		return nil
	}
	return errors.New(s.Error)
}

func watchLag(ctx context.Context, out io.Writer, m *lag.Monitor, asJSON bool, groups []string) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		s := m.Look(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if missing := absent(groups, s); s.Error == "" && missing != "" {
			return noGroup(missing)
		}
		show := func() error { return drawLag(out, s, paint(out), len(groups) > 0) }
		if asJSON {
			show = func() error { return printJSON(out, partitions(s)) }
		}
		if err := show(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func noGroup(name string) error {
	return fmt.Errorf("group %s does not exist or has read nothing; see waybill groups", name)
}

// absent is the first of groups that was not found, empty if there is none.
func absent(groups []string, s *lag.Snapshot) string {
	for _, g := range groups {
		if s.Group(g) == nil {
			return g
		}
	}
	return ""
}

func partitions(s *lag.Snapshot) []lag.Partition {
	out := []lag.Partition{}
	for i := range s.Groups {
		out = append(out, s.Groups[i].Partitions...)
	}
	return out
}

func showLag(out io.Writer, s *lag.Snapshot, p painter) error {
	all := partitions(s)
	if err := table(out, lagRows(all, p)); err != nil {
		return err
	}
	return notes(out, s, all)
}

func lagRows(all []lag.Partition, p painter) [][]string {
	rows := [][]string{{"GROUP", "TOPIC", "PARTITION", "COMMITTED", "END", "LAG", "TIME", "IN/s", "OUT/s", "DRAINS IN", "STATE"}}
	for _, l := range all {
		committed := "none"
		if l.Committed != nil || l.Lag == nil && l.Ours {
			committed = number(l.Committed)
		}
		rows = append(rows, []string{
			l.Group, l.Topic, strconv.Itoa(int(l.Partition)), committed, number(l.End), number(l.Lag),
			behindText(l.Seconds, l.Exact), perSecond(l.In), perSecond(l.Out), drainText(l.Lag, l.Drain, l.In, l.Out),
			p.state(l.State),
		})
	}
	return rows
}

// notes say what the states of a table mean, below it.
func notes(out io.Writer, s *lag.Snapshot, all []lag.Partition) error {
	const most = 20
	var lines []string
	for _, l := range all {
		if l.Why == "" {
			continue
		}
		at := ""
		if l.At != nil {
			at = fmt.Sprintf(" at offset %d", *l.At)
		}
		lines = append(lines, fmt.Sprintf("%s on %s/%d: %s%s: %s", l.Group, l.Topic, l.Partition, l.State, at, oneLine(l.Why)))
	}
	if len(lines) > most {
		lines = append(lines[:most:most], fmt.Sprintf("… and %d more", len(lines)-most))
	}
	if s.LeftOut > 0 {
		lines = append(lines, fmt.Sprintf("%d partitions are left out: there are too many; name a group", s.LeftOut))
	}
	if len(lines) > 0 {
		lines = slices.Insert(lines, 0, "")
	}
	for _, l := range lines {
		if _, err := fmt.Fprintln(out, l); err != nil {
			return err
		}
	}
	return nil
}
