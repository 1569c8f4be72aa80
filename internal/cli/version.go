package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version is what was built, and from what, as far as the build noted it.
type version struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Modified bool   `json:"modified,omitempty"` // with changes that are in no revision
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func newVersion() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Tell which version this is",
		Args:  cobra.NoArgs,
	}
	asJSON := jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		v := thisVersion()
		if *asJSON {
			return printJSON(cmd.OutOrStdout(), v)
		}
		text := "waybill version " + v.Version
		if v.Revision != "" {
			text += fmt.Sprintf(" (%.12s", v.Revision)
			if v.Modified {
				text += ", modified"
			}
			text += ")"
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s, %s, %s\n", text, v.Go, v.Platform)
		return err
	}
	return cmd
}

func thisVersion() version {
	v := version{Version: Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	built, ok := debug.ReadBuildInfo()
	if !ok {
		return v
	}
	for _, s := range built.Settings {
		switch s.Key {
		case "vcs.revision":
			v.Revision = s.Value
		case "vcs.modified":
			v.Modified = s.Value == "true"
		}
	}
	return v
}
