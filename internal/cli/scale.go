package cli

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/lag"
)

func newScale() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scale [GROUP...]",
		Short: "Say how many replicas and workers would drain a group in time, and why",
		Long: `Looks at the groups for --over and says how many replicas, and workers in each,
would drain what they are behind within --drain. It changes nothing. Never more
replicas than partitions, and none for partitions that a failing event stalls.
Goals of single groups may stand in the configuration file under scale.`,
	}
	asJSON, t := jsonFlag(cmd), targetFlags(cmd, true)
	f := cmd.Flags()
	over := f.Duration("over", 10*time.Second, "time over which rates are taken")
	drain := f.Duration("drain", 0, "how soon a lag shall be gone (1m unless configured)")
	least := f.Int("min", 0, "replicas at least (1 unless configured)")
	most := f.Int("max", 0, "replicas at most (partitions unless configured)")
	workers := f.Int("workers", 0, "workers of each replica now (8 are assumed unless configured)")
	cmd.RunE = func(cmd *cobra.Command, groups []string) error {
		if *over < time.Second || *over > time.Hour {
			return usagef("--over %s: want 1s to 1h", *over)
		}
		if err := notZero(cmd, "drain", "min", "max", "workers"); err != nil {
			return err
		}
		if *drain < 0 || *least < 0 || *most < 0 || *workers < 0 || *most > 0 && *most < *least {
			return usagef("--drain %s --min %d --max %d --workers %d: want them above zero, and --max not below --min", *drain, *least, *most, *workers)
		}
		m, done, err := t.monitor(cmd, groups, time.Second)
		if err != nil {
			return err
		}
		defer done()
		s, err := lookOver(cmd.Context(), m, *over)
		if err != nil {
			return err
		}
		if missing := absent(groups, s); s.Error == "" && missing != "" {
			return noGroup(missing)
		}
		all := []advice{}
		for i := range s.Groups {
			goal := app.ScaleGoal(t.cfg.Scale, s.Groups[i].Name)
			override(&goal.Drain, *drain)
			override(&goal.Min, *least)
			override(&goal.Max, *most)
			override(&goal.Workers, *workers)
			all = append(all, advice{lag.Advise(&s.Groups[i], goal), goal.Workers == 0})
		}
		if *asJSON {
			return errors.Join(printJSON(cmd.OutOrStdout(), all), problem(s))
		}
		return errors.Join(table(cmd.OutOrStdout(), adviceRows(all)), problem(s))
	}
	return cmd
}

func override[T int | time.Duration](v *T, flag T) {
	if flag > 0 {
		*v = flag
	}
}

// advice is one with what it had to assume.
type advice struct {
	lag.Advice
	Assumed bool `json:"workers_assumed"` // nobody said how many workers there are, and 8 were taken
}

// workers is how many there should be. Where nobody said how many there are, it
// must not look as if that were known.
func (a advice) workers() string {
	const assumed = 8
	switch {
	case !a.Assumed:
		return strconv.Itoa(a.Workers)
	case a.Workers == assumed:
		return "as they are"
	}
	return fmt.Sprintf("%d if there are %d", a.Workers, assumed)
}

func adviceRows(all []advice) [][]string {
	rows := [][]string{{"GROUP", "MEMBERS", "REPLICAS", "WORKERS EACH", "PARTITIONS", "LAG", "WHY"}}
	for _, a := range all {
		members := "unknown"
		if a.Now != nil {
			members = strconv.Itoa(*a.Now)
		}
		rows = append(rows, []string{
			a.Group, members, strconv.Itoa(a.Replicas), a.workers(), strconv.Itoa(a.Partitions), number(a.Lag), oneLine(a.Reason),
		})
	}
	return rows
}
