package cli

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/registry/server"
)

// registryURL is a registry of the test's own.
func registryURL(t *testing.T) string {
	t.Helper()
	e := brokertest.New(t)
	s := server.New(e.Config, server.Config{Topic: brokertest.Topic(t, "schemas"), Capabilities: e.Capabilities, Logger: e.Logger})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	web := httptest.NewServer(s)
	t.Cleanup(func() {
		web.Close()
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	<-s.Ready()
	return web.URL
}

// contractFolder has one contract, with these fields besides its key.
func contractFolder(t *testing.T, fields string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "contracts")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	text := `{"type":"record","name":"bank.Opened","doc":"An account was opened.","topic":"bank.events","source":"/bank","key":"id",
		"fields":[{"name":"id","type":"string"}` + fields + `]}`
	if err := os.WriteFile(filepath.Join(dir, "opened.avsc"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestContractsFromTheCommandLine(t *testing.T) {
	const subject = "bank.events-bank.Opened"
	url := registryURL(t)
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, errOut := command(append(append([]string{"schema"}, args...), "--registry", url)...)
		if code != want {
			t.Fatalf("%v: %d %s %s", args, code, out, errOut)
		}
		return out + errOut
	}
	says := func(out string, parts ...string) {
		t.Helper()
		for _, p := range parts {
			if !strings.Contains(out, p) {
				t.Errorf("%q is not in:\n%s", p, out)
			}
		}
	}
	v1 := contractFolder(t, `,{"name":"note","type":"string"}`)
	v2 := contractFolder(t, `,{"name":"note","type":"string"},{"name":"more","type":["null","string"],"default":null}`)
	bad := contractFolder(t, `,{"name":"more","type":["null","string"],"default":null}`)

	says(run(exitOK, "ls"), "waybill schema register")
	says(run(exitOK, "check", v1), "new", "0 versions")
	says(run(exitOK, "register", v1), subject, "new")
	says(run(exitOK, "register", v1), "was there")
	says(run(exitOK, "check", v2), "changed", "added", "more: null or string, default null")
	says(run(exitOK, "register", v2), "new")
	says(run(exitFailed, "check", bad), "BREAKS", "version 1", `field "note"`, "contracts that break what is written or read: 1")
	says(run(exitFailed, "register", bad), `"note"`)
	says(run(exitOK, "check", bad, "--level", "none"), "ok")
	says(run(exitOK, "ls", "bank"), subject, "FULL_TRANSITIVE", "An account was opened.")
	says(run(exitOK, "diff", subject), "from version 1 to version 2", "added    more", "version 2 can read what version 1")
	says(run(exitOK, "diff", subject, "--with", bad), "from version 2 to opened.avsc", "removed  note", "CANNOT read")
	says(run(exitFailed, "diff", subject, "7"), "no version 7; its latest is 2")
	says(run(exitFailed, "diff", "nobody"), "waybill schema ls")
	run(exitUsage, "diff", subject, "x")
	run(exitUsage, "check", v1, "--level", "BACK")
	says(run(exitFailed, "check", t.TempDir()), "no *.avsc")
	var found []struct {
		State   string
		Breaks  []string
		Changes []struct{ Path, Kind string }
	}
	code, out, _ := command("schema", "check", bad, "--json", "--registry", url)
	if err := json.Unmarshal([]byte(out), &found); err != nil || code != exitFailed || len(found) != 1 || len(found[0].Breaks) == 0 || found[0].Changes[0].Kind != "removed" {
		t.Errorf("%d %v %+v", code, err, found)
	}
	if code, _, errOut := command("schema", "ls", "--registry", "http://127.0.0.1:1"); code != exitFailed || !strings.Contains(errOut, "--registry") {
		t.Errorf("%d %s", code, errOut)
	}
}

func TestGeneratedTypesAreWritten(t *testing.T) {
	dir := contractFolder(t, "")
	if code, _, errOut := command("schema", "generate", dir); code != exitOK {
		t.Fatal(errOut)
	}
	text, err := os.ReadFile(filepath.Join(dir, "opened_gen.go"))
	if err != nil || !strings.Contains(string(text), "type Opened struct") {
		t.Errorf("%v %s", err, text)
	}
}
