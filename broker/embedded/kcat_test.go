package embedded

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/broker"
)

func kcat(t *testing.T, b *Broker, stdin string, args ...string) string {
	t.Helper()
	path, err := exec.LookPath("kcat")
	if err != nil {
		t.Skip("kcat is not installed: apt install kcat")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"-b", b.Addr()}, args...)...) // #nosec G204 -- a test's own words
	cmd.Stdin = strings.NewReader(stdin)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("kcat %v: %v\n%s", args, err, errs.String())
	}
	return out.String()
}

func TestKcatListsProducesAndConsumes(t *testing.T) {
	b := start(t, Config{})
	if err := broker.Declare(t.Context(), client(t, b), b.Capabilities(), broker.Topic{Name: "accounts", Partitions: 2, Retention: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if out := kcat(t, b, "", "-L"); !strings.Contains(out, `topic "accounts" with 2 partitions`) {
		t.Errorf("list: %s", out)
	}
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		kcat(t, b, "k:v-"+codec+"\n", "-P", "-t", "accounts", "-p", "0", "-K", ":", "-H", "h=1", "-z", codec)
	}
	out := kcat(t, b, "", "-C", "-t", "accounts", "-p", "0", "-e", "-f", `%k %h %s\n`)
	want := "k h=1 v-none\nk h=1 v-gzip\nk h=1 v-snappy\nk h=1 v-lz4\nk h=1 v-zstd\n"
	if out != want {
		t.Errorf("consumed %q", out)
	}
	out = kcat(t, b, "", "-G", "readers", "-X", "auto.offset.reset=earliest", "-c", "3", "-f", `%s\n`, "accounts")
	if strings.Count(out, "\n") != 3 {
		t.Errorf("consumed as a group: %q", out)
	}
}
