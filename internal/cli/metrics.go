package cli

import (
	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/app"
	"github.com/waybillhq/waybill/internal/config"
)

// metricsFlag is for the commands that run without the API's address. The value
// is the caller's to apply after file and environment, over which it wins.
func metricsFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("metrics-listen", "", "address of /metrics, /healthz and /readyz, or "+config.MetricsOff+
		" (env "+config.EnvMetrics+", default "+config.DefaultMetricsListen+", or the next port that is free)")
}

// metricsText says where the metrics of a are.
func metricsText(a *app.App) string {
	if at := a.OpsAddress(); at != "" {
		return "http://" + at + "/metrics"
	}
	return config.MetricsOff
}
