package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/queue"
)

// Whoever writes 0 means none, and not what stands for leaving it out.
func TestZeroIsNotTakenForNothingSaid(t *testing.T) {
	for _, args := range [][]string{
		{"scale", "--drain", "0"},
		{"scale", "--drain", "0s"},
		{"scale", "--workers", "0"},
		{"scale", "--min", "0"},
		{"scale", "--max", "0"},
		{"queue", "create", "q", "--max-deliveries", "0"},
		{"queue", "create", "q", "--lease", "0s"},
		{"queue", "create", "q", "--max-length", "0"},
		{"queue", "receive", "q", "--max", "0"},
		{"queue", "receive", "q", "--lease", "0s"},
	} {
		flag := args[len(args)-2]
		if code, _, errOut := command(args...); code != exitUsage || !strings.Contains(errOut, flag+" 0") || !strings.Contains(errOut, "leave it out") {
			t.Errorf("%v: %d %s", args, code, errOut)
		}
	}
}

func TestQueuesThatAreNewThereAndMissing(t *testing.T) {
	db, dsn := emptyDatabase(t)
	if err := pg.Migrate(t.Context(), db, queue.Migration()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		code int
		say  string
		args []string
	}{
		{exitOK, "queue mail is created", []string{"create", "mail"}},
		{exitOK, "was there and has these settings now", []string{"create", "mail", "--lease", "1m"}},
		{exitOK, `"created": false`, []string{"create", "mail", "--json"}},
		{exitOK, `"created": true`, []string{"create", "post", "--json"}},
		{exitFailed, "waybill queue ls lists those there are", []string{"rm", "nosuch"}},
	} {
		code, out, errOut := command(append(append([]string{"queue"}, c.args...), "--database", dsn)...)
		if code != c.code || !strings.Contains(out+errOut, c.say) || strings.Contains(errOut, "declare") {
			t.Errorf("%v: %d %s %s", c.args, code, out, errOut)
		}
	}
}

func TestACauseThatNothingDiedOfIsNoSuccess(t *testing.T) {
	_, dsn := withDead(t)
	redrive := func(args ...string) (int, string, string) {
		return command(append([]string{"dlq", "redrive", "--database", dsn, "--group", "billing", "--wait", "0s"}, args...)...)
	}
	if code, out, errOut := redrive("--cause", "ffffffff"); code != exitFailed || out != "" || !strings.Contains(errOut, "waybill dlq ls --group billing") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	if code, out, errOut := redrive("--key", "a", "--dry-run"); code != exitOK || !strings.Contains(out, "1 key would be tried again") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	if code, out, errOut := redrive("--key", "a"); code != exitOK || !strings.Contains(out, "1 key is to be tried again") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	if code, out, errOut := redrive("--cause", "c0ffee00"); code != exitOK || !strings.Contains(out, "1 key is") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	if code, out, errOut := redrive("--cause", "c0ffee00"); code != exitOK || !strings.Contains(out, "tried again already") {
		t.Errorf("the same again: %d %s %s", code, out, errOut)
	}
	if code, out, _ := command("dlq", "drop", "--database", dsn, "--group", "billing", "--cause", "c0ffee00", "--reason", "x", "--dry-run"); code == exitOK && strings.Contains(out, "1 events") {
		t.Error(out)
	}
}

func TestARegistryThatWantsCredentialsSaysHowTheyAreGiven(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, password, _ := r.BasicAuth(); password != "secret" {
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = w.Write([]byte(`{"error_code":401,"message":"Unauthorized"}`))
			return
		}
		_, _ = w.Write([]byte(`[]`))
	}))
	t.Cleanup(web.Close)
	code, _, errOut := command("schema", "ls", "--registry", web.URL)
	if code != exitFailed || !strings.Contains(errOut, "NAME:PASSWORD@") || !strings.Contains(errOut, "WAYBILL_CONFIG") || strings.Contains(errOut, "waybill up") {
		t.Errorf("%d %s", code, errOut)
	}
	code, _, errOut = command("schema", "ls", "--registry", strings.Replace(web.URL, "http://", "http://ann:wrong@", 1))
	if code != exitFailed || strings.Contains(errOut, "wrong@") || strings.Contains(errOut, "ann") {
		t.Errorf("%d %s", code, errOut)
	}
	if code, _, errOut := command("schema", "ls", "--registry", strings.Replace(web.URL, "http://", "http://ann:secret@", 1)); code != exitOK {
		t.Errorf("%d %s", code, errOut)
	}
}

// A subject in another language must not cost the list of all others.
func TestSubjectsOfOtherLanguagesAreListed(t *testing.T) {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]string{
			"/subjects": `["b","a"]`, "/subjects/a/versions": `[1]`, "/subjects/b/versions": `[1,2]`,
			"/subjects/a/versions/1": `{"subject":"a","version":1,"id":7,"schema":"\"int\""}`,
			"/subjects/b/versions/2": `{"subject":"b","version":2,"id":8,"schemaType":"PROTOBUF","schema":"message B {}"}`,
		}[r.URL.Path]
		if answer == "" {
			answer = `{"compatibilityLevel":"FULL"}`
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(web.Close)
	code, out, errOut := command("schema", "ls", "--registry", web.URL)
	if code != exitOK || !strings.Contains(out, "a ") || !strings.Contains(out, "no Avro that is understood here") {
		t.Errorf("%d %s %s", code, out, errOut)
	}
	code, out, _ = command("schema", "ls", "--json", "--registry", web.URL)
	var all []subjectInfo
	if err := json.Unmarshal([]byte(out), &all); err != nil || code != exitOK || len(all) != 2 || all[1].ID != 8 || all[1].Latest != 2 {
		t.Errorf("%d %v %+v", code, err, all)
	}
}

func TestASchemaThatIsTooLargeIsNoRegistryThatIsAway(t *testing.T) {
	url := registryURL(t)
	dir := contractFolder(t, `,{"name":"note","type":"string","doc":"`+strings.Repeat("x", 1<<20)+`"}`)
	code, _, errOut := command("schema", "register", dir, "--registry", url)
	if code != exitFailed || strings.Contains(errOut, "unavailable") || !strings.Contains(errOut, "more than the registry takes") {
		t.Errorf("%d %.500s", code, errOut)
	}
}

func TestWhatIsWrittenAndWhatIsNoContractIsTold(t *testing.T) {
	dir := contractFolder(t, "")
	code, out, errOut := command("schema", "generate", dir)
	if want := filepath.Join(dir, "contracts_gen.go") + "\n" + filepath.Join(dir, "opened_gen.go") + "\n"; code != exitOK || out != want {
		t.Errorf("%d %q %s", code, out, errOut)
	}
	if err := os.WriteFile(filepath.Join(dir, "opened.avsc"), []byte("{\n  \"type\": \"record\",\n}"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"generate"}, {"check"}, {"register"}, {"docs"}} {
		code, _, errOut := command(append(append([]string{"schema"}, args...), dir)...)
		if code != exitFailed || !strings.Contains(errOut, "opened.avsc: line 3, column 1: invalid character '}'") {
			t.Errorf("%v: %d %s", args, code, errOut)
		}
	}
}
