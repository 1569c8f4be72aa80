package cli

import (
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
		Args: cobra.MinimumNArgs(1),
	}
	cmd.Flags().StringVar(&cfg.Listen, "listen", cfg.Listen, "address of the API and pages, for the role api")
	level := logFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, roles []string) error {
		log, err := newLogger(cmd.ErrOrStderr(), *level)
		if err != nil {
			return err
		}
		if err := configure(&cfg); err != nil {
			return err
		}
		a, err := app.Run(cmd.Context(), cfg, log, roles...)
		if err != nil {
			return err
		}
		log.InfoContext(cmd.Context(), "running", "roles", strings.Join(roles, ","))
		return stopAfter(cmd.Context(), a, a.Wait(cmd.Context()))
	}
	return cmd
}
