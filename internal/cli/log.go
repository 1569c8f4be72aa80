package cli

import (
	"io"
	"log/slog"

	"github.com/spf13/cobra"
)

func logFlag(cmd *cobra.Command) *string {
	return cmd.Flags().String("log-level", "info", "what to log on stderr: debug, info, warn or error")
}

func newLogger(w io.Writer, level string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level %q: want debug, info, warn or error", level)
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: l})), nil
}

// quiet is for commands that ask once and print: their errors are returned.
func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }
