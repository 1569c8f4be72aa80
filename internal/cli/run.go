package cli

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/internal/config"
)

func newRun() *cobra.Command {
	cfg := config.Default()
	cmd := &cobra.Command{
		Use:   "run ROLE...",
		Short: "Play roles against engines that run elsewhere",
		Long: `Plays one or more roles (` + strings.Join(app.Roles(), ", ") + `) against Postgres, Kafka or Redpanda
and a schema registry of yours, named by ` + config.EnvDatabaseURL + `,
` + config.EnvBrokers + ` and ` + config.EnvRegistryURL + `.`,
		Args: cobra.MatchAll(cobra.MinimumNArgs(1), knownRoles),
	}
	cmd.Flags().StringVar(&cfg.Listen, "listen", cfg.Listen, "address of the API and pages, for the role api; without it that of lag and scale, for monitor")
	level, metrics := logFlag(cmd), metricsFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, roles []string) error {
		log, err := newLogger(cmd.ErrOrStderr(), *level)
		if err != nil {
			return err
		}
		if err := configure(&cfg, *metrics); err != nil {
			return err
		}
		if cfg.DatabaseURL == "" || len(cfg.Brokers) == 0 || cfg.RegistryURL == "" {
			return usagef("roles run against engines of yours: set %s, %s and %s (`waybill up` starts engines itself)",
				config.EnvDatabaseURL, config.EnvBrokers, config.EnvRegistryURL)
		}
		a, err := app.Run(cmd.Context(), cfg, log, roles...)
		if err != nil {
			return err
		}
		log.InfoContext(cmd.Context(), "running", "roles", strings.Join(roles, ","), "metrics", metricsText(a))
		return stopAfter(cmd.Context(), a, a.Wait(cmd.Context()))
	}
	return cmd
}

func knownRoles(_ *cobra.Command, roles []string) error {
	for _, r := range roles {
		if !slices.Contains(app.Roles(), r) {
			return usagef("unknown role %q: want one or more of %s", r, strings.Join(app.Roles(), ", "))
		}
	}
	return nil
}
