package cli

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/queue"
)

func TestQueuesFromTheCommandLine(t *testing.T) {
	db, dsn := emptyDatabase(t)
	if code, _, errOut := command("queue", "ls", "--database", dsn); code != exitFailed || !strings.Contains(errOut, "waybill up") {
		t.Errorf("without tables: %d %s", code, errOut)
	}
	if err := pg.Migrate(t.Context(), db, queue.Migration()); err != nil {
		t.Fatal(err)
	}
	run := func(want int, args ...string) string {
		t.Helper()
		code, out, errOut := command(append(append([]string{"queue"}, args...), "--database", dsn)...)
		if code != want {
			t.Fatalf("%v: %d %s %s", args, code, out, errOut)
		}
		return out + errOut
	}
	if out := run(exitFailed, "send", "mail", "x"); !strings.Contains(out, "waybill queue create") {
		t.Error(out)
	}
	run(exitUsage, "create", "Bad Name")
	run(exitOK, "create", "mail", "--max-deliveries", "1")
	if out := run(exitOK, "send", "mail", `{"to":"ana"}`, "--dedupe-id", "1", "--header", "a=b", "--json"); !strings.Contains(out, `"duplicate": false`) {
		t.Error(out)
	}
	if out := run(exitOK, "send", "mail", `{"to":"ana"}`, "--dedupe-id", "1"); !strings.Contains(out, "sent before") {
		t.Error(out)
	}
	var got []struct {
		Receipt string
		Body    struct{ To string }
		Headers map[string]string
	}
	if err := json.Unmarshal([]byte(run(exitOK, "receive", "mail", "--json")), &got); err != nil || len(got) != 1 || got[0].Body.To != "ana" || got[0].Headers["a"] != "b" {
		t.Fatalf("%+v, %v", got, err)
	}
	if out := run(exitOK, "receive", "mail"); !strings.Contains(out, "no message") {
		t.Error(out)
	}
	run(exitOK, "extend", "mail", got[0].Receipt, "--lease", "1m")
	run(exitOK, "nack", "mail", got[0].Receipt, "--reason", "no such address")
	run(exitFailed, "ack", "mail", got[0].Receipt)
	run(exitUsage, "ack", "mail", "nonsense")
	if out := run(exitOK, "dead", "mail"); !strings.Contains(out, "no such address") {
		t.Error(out)
	}
	if out := run(exitOK, "redrive", "mail"); !strings.Contains(out, "1 message back in the queue") {
		t.Error(out)
	}
	if out := run(exitOK, "stats", "--json"); !strings.Contains(out, `"ready": 1`) {
		t.Error(out)
	}
	if out := run(exitFailed, "rm", "mail"); !strings.Contains(out, "purge it first") {
		t.Error(out)
	}
	if out := run(exitOK, "purge", "mail"); !strings.Contains(out, "1 message removed") {
		t.Error(out)
	}
	run(exitOK, "rm", "mail")
}
