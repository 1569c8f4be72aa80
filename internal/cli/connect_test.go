package cli

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"

	"github.com/waybillhq/waybill/internal/config"
)

// An outbox asked of the wrong mode would look empty where it is not known.
func TestTheModeIsThatOfTheWaybillInTheFolder(t *testing.T) {
	for _, name := range []string{config.EnvDatabaseURL, config.EnvRelay, config.EnvFile} {
		t.Setenv(name, "")
	}
	dir := t.TempDir()
	running := `{"database": "postgres://running", "relay": "message"}`
	if err := os.WriteFile(filepath.Join(dir, "running.json"), []byte(running), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env, database, want string
	}{
		{want: "message"},
		{env: "poll", want: "poll"},
		{database: "postgres://another"},
	} {
		t.Setenv(config.EnvRelay, c.env)
		cmd := &cobra.Command{}
		target := targetFlags(cmd, true)
		if err := cmd.Flags().Parse([]string{"--dir", dir, "--database", c.database}); err != nil {
			t.Fatal(err)
		}
		if err := target.resolve(); err != nil {
			t.Fatal(err)
		}
		if got := target.cfg.Outbox.Relay; got != c.want {
			t.Errorf("environment %q, database %q: mode %q, want %q", c.env, c.database, got, c.want)
		}
	}
}
