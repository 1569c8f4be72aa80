// Package cli holds the command line to its contract: 0 is done, 1 failed, 2 a
// mistake of the caller; a message says what to do; --json is JSON.
package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/test/proc"
)

// nowhere is an address where nobody listens.
const nowhere = "127.0.0.1:1"

// check holds how a command ended against what was wanted; each of say must be
// in its message, which is on stderr alone.
func check(t *testing.T, r proc.Result, code int, say ...string) {
	t.Helper()
	if r.Code != code {
		t.Errorf("exit code %d, want %d", r.Code, code)
	}
	for _, s := range say {
		if !strings.Contains(r.Err, s) {
			t.Errorf("the message does not say %q", s)
		}
	}
	if code != 0 && !strings.Contains(r.Err, "waybill: ") {
		t.Error("failed without a word")
	}
	if t.Failed() {
		t.Logf("stdout:\n%s\nstderr:\n%s", r.Out, r.Err)
	}
}

func TestMistakesOfTheCaller(t *testing.T) {
	file := filepath.Join(t.TempDir(), "waybill.yaml")
	if err := os.WriteFile(file, []byte("kafak:\n  brokers: [127.0.0.1:9092]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line string
		say  []string
		env  string
	}{
		{line: "nosuch", say: []string{`"nosuch"`, "--help"}},
		{line: "up --nosuch", say: []string{"--nosuch", "waybill up --help"}},
		{line: "up now", say: []string{`"now"`, "usage: waybill up"}},
		{line: "up --listen nonsense", say: []string{"--listen", `"nonsense"`, "HOST:PORT"}},
		{line: "up --listen 127.0.0.1:http", say: []string{"--listen", `"http"`, "65535"}},
		{line: "up --listen 127.0.0.1:65536", say: []string{"--listen", "65535"}},
		{line: "up --kafka-listen 9092", say: []string{"--kafka-listen", "HOST:PORT"}},
		{line: "up --kafka-advertise here", say: []string{"--kafka-advertise", "HOST:PORT"}},
		{line: "up --registry-listen :-1", say: []string{"--registry-listen", "65535"}},
		{line: "up --postgres-port 70000", say: []string{"--postgres-port", "65535"}},
		{line: "up --postgres-port many", say: []string{"--postgres-port", `"many"`}},
		{line: "up --log-level loud", say: []string{"--log-level", "debug, info, warn or error"}},
		{line: "up --dir=", say: []string{"--dir"}},
		{line: "up", env: "WAYBILL_CONFIG=" + file, say: []string{file, "kafak"}},
		{line: "up", env: "WAYBILL_CONFIG=/no/such/file", say: []string{"WAYBILL_CONFIG=/no/such/file"}},
		{line: "demo outage --rate 0", say: []string{"--rate", "1 to 50"}},
		{line: "demo outage --away 1h", say: []string{"--away", "30s"}},
		{line: "broker it", say: []string{"usage: waybill broker"}},
		{line: "broker --kafka-listen x", say: []string{"--kafka-listen"}},
		{line: "broker --log-level x", say: []string{"--log-level"}},
		{line: "run", say: []string{"usage: waybill run ROLE"}},
		{line: "run baker", say: []string{`"baker"`, "analytics", "relay", "api"}},
		{line: "run api", say: []string{"WAYBILL_DATABASE_URL", "WAYBILL_KAFKA_BROKERS", "WAYBILL_REGISTRY_URL", "waybill up"}},
		{line: "publish", say: []string{"usage: waybill publish TOPIC"}},
		{line: "publish a b c", say: []string{"usage: waybill publish TOPIC"}},
		{line: "publish a {} --header x", say: []string{"--header", "NAME=VALUE"}},
		{line: "publish a {} --registry nonsense", say: []string{"http://HOST:PORT"}},
		{line: "subscribe", say: []string{"usage: waybill subscribe TOPIC"}},
		{line: "subscribe a b", say: []string{"usage: waybill subscribe TOPIC"}},
		{line: "subscribe a --count -1", say: []string{"--count"}},
		{line: "subscribe a --count x", say: []string{"--count"}},
		{line: "tail", say: []string{"usage: waybill tail TOPIC"}},
		{line: "tail a --last -1", say: []string{"--last"}},
		{line: "tail a --count -1", say: []string{"--count"}},
		{line: "topics create", say: []string{"usage: waybill topics create TOPIC"}},
		{line: "topics create a --partitions 0", say: []string{"--partitions", "1024"}},
		{line: "topics create a --retention soon", say: []string{"--retention"}},
		{line: "topics create a --retention -5s", say: []string{"--retention", "-1s"}},
		{line: "groups a", say: []string{`unknown command "a"`, "see waybill groups --help"}},
		{line: "topics", env: "WAYBILL_CONFIG=" + file, say: []string{"kafak"}},
		{line: "outbox stats", say: []string{`"stats"`}},
		{line: "outbox status now", say: []string{"usage: waybill outbox status"}},
		{line: "bench e3e", say: []string{`"e3e"`}},
		{line: "bench e2e --rate 0", say: []string{"--rate"}},
		{line: "bench e2e --seconds 0", say: []string{"--seconds"}},
		{line: "bench e2e --customers -1", say: []string{"--customers"}},
		{line: "bench e2e --url http://" + nowhere, say: []string{"--url and --key"}},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			cmd := proc.Command{Args: strings.Fields(c.line)}
			if c.env != "" {
				cmd.Env = []string{c.env}
			}
			r := cmd.Run(t)
			check(t, r, 2, c.say...)
			if r.Out != "" {
				t.Errorf("a mistake was answered on stdout: %s", r.Out)
			}
		})
	}
}

func TestEnginesThatDoNotAnswer(t *testing.T) {
	for _, c := range []struct {
		line string
		say  []string
	}{
		{"topics --brokers " + nowhere, []string{nowhere, "--brokers", "waybill up"}},
		{"topics create a --brokers " + nowhere, []string{nowhere, "--brokers"}},
		{"groups --brokers " + nowhere, []string{nowhere, "--brokers"}},
		{"lag --brokers " + nowhere, []string{nowhere, "--brokers"}},
		{"tail a --brokers " + nowhere, []string{nowhere, "--brokers"}},
		{"subscribe a --brokers " + nowhere, []string{nowhere, "--brokers"}},
		{"publish a {} --brokers " + nowhere, []string{nowhere, "--brokers"}},
		{"topics --dir /nowhere", []string{"/nowhere", "--dir"}},
		{"outbox status", []string{"--database", "WAYBILL_DATABASE_URL", "--dir"}},
		{"outbox status --database postgres://me:hush@" + nowhere + "/x", []string{nowhere}},
		{"bench e2e --url http://" + nowhere + " --key k", []string{nowhere}},
	} {
		t.Run(c.line, func(t *testing.T) {
			t.Parallel()
			r := proc.Run(t, strings.Fields(c.line)...)
			check(t, r, 1, c.say...)
			if strings.Contains(r.Err, "hush") {
				t.Errorf("the message tells the password: %s", r.Err)
			}
		})
	}
}

func TestHelpListsEveryCommand(t *testing.T) {
	for _, line := range []string{"--help", "help", ""} {
		r := proc.Run(t, strings.Fields(line)...)
		check(t, r, 0)
		for _, c := range []string{"up", "run", "broker", "publish", "subscribe", "tail", "topics", "groups", "lag", "outbox", "tenant", "bench"} {
			if !strings.Contains(r.Out, "\n  "+c+" ") {
				t.Errorf("waybill %s does not list %s", line, c)
			}
		}
	}
	r := proc.Run(t, "--version")
	check(t, r, 0)
	if !strings.HasPrefix(r.Out, "waybill version ") {
		t.Errorf("--version: %s", r.Out)
	}
}

func TestFlagsBeatEnvironmentBeatsFile(t *testing.T) {
	const file, env, flag = "127.0.0.1:2", "127.0.0.1:3", "127.0.0.1:4"
	path := filepath.Join(t.TempDir(), "waybill.yaml")
	if err := os.WriteFile(path, []byte("kafka:\n  brokers: ["+file+"]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args, env []string
		asks      string
	}{
		{nil, nil, "127.0.0.1:9092"}, // whoever is there, or not
		{nil, []string{"WAYBILL_CONFIG=" + path}, file},
		{nil, []string{"WAYBILL_CONFIG=" + path, "WAYBILL_KAFKA_BROKERS=" + env}, env},
		{[]string{"--brokers", flag}, []string{"WAYBILL_CONFIG=" + path, "WAYBILL_KAFKA_BROKERS=" + env}, flag},
	} {
		r := proc.Command{Args: append([]string{"topics"}, c.args...), Env: c.env}.Run(t)
		if r.Code == 0 && c.env == nil {
			continue
		}
		check(t, r, 1, "["+c.asks+"]")
	}
}

// parse holds that out is one JSON value and gives it.
func parse[T any](t *testing.T, r proc.Result) (v T) {
	t.Helper()
	check(t, r, 0)
	if err := json.Unmarshal([]byte(r.Out), &v); err != nil {
		t.Fatalf("not JSON: %v\n%s", err, r.Out)
	}
	return v
}
