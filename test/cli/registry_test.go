package cli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/test/proc"
)

// Credentials without a URL are what the registry of our own asks for, and
// what the program's other commands then send.
func TestARegistryOfOurOwnAsksForCredentials(t *testing.T) {
	file := filepath.Join(t.TempDir(), "waybill.yaml")
	if err := os.WriteFile(file, []byte("registry: {user: ann, password: secret}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w := proc.Broker(t)
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	w.Env = append(w.Env, "WAYBILL_CONFIG="+file)
	w.Start()
	for password, want := range map[string]int{"": 401, "wrong": 401, "secret": 200} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut, w.Registry+"/config", strings.NewReader(`{"compatibility":"FULL"}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if password != "" {
			req.SetBasicAuth("ann", password)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%q: %d, want %d", password, resp.StatusCode, want)
		}
	}
	check(t, proc.Command{Args: []string{"topics", "create", "notes", "--dir", w.Dir}}.Run(t), 0)
	// Secrets go to addresses that somebody named, and not to the default one.
	if r := (proc.Command{Args: []string{"schema", "ls", "--dir", w.Dir}, Env: w.Env}).Run(t); r.Code != 0 {
		t.Errorf("by --dir: %d %s", r.Code, r.Err)
	}
	check(t, proc.Command{Args: []string{"schema", "ls"}, Env: w.Env}.Run(t), 2, "--registry", "--dir")
	publish := proc.Command{Args: []string{"publish", "notes", `{"text":"x"}`, "--brokers", w.Kafka, "--registry", w.Registry}, Env: w.Env}
	if r := publish.Run(t); r.Code != 1 || !strings.Contains(r.Err, "no schema is registered") {
		t.Errorf("with credentials: %d %s", r.Code, r.Err)
	}
	publish.Env = nil
	if r := publish.Run(t); r.Code != 1 || !strings.Contains(r.Err, "Unauthorized") {
		t.Errorf("without: %d %s", r.Code, r.Err)
	}
	if strings.Contains(w.Output(), "secret") {
		t.Error("the output tells the password")
	}
}
