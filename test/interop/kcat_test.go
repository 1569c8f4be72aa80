package interop

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/registry/server"
)

// kcat runs kcat on the house's broker.
func (h *house) kcat(stdin string, args ...string) string {
	h.Helper()
	out, failed := run(h.T, stdin, command(h.T, "kcat", "kcat"), append([]string{"-b", h.brokers(), "-m", "30"}, args...)...)
	if failed {
		h.Fatalf("kcat %v: %s", args, out)
	}
	return out
}

func TestKcatListsProducesAndConsumes(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	topic := h.topic("plain")
	if out := h.kcat("", "-L", "-J", "-t", topic); !json.Valid([]byte(out)) || !strings.Contains(out, topic) {
		t.Errorf("list: %s", out)
	}
	want := ""
	for _, codec := range []string{"none", "gzip", "snappy", "lz4", "zstd"} {
		h.kcat("k:"+codec+"\n", "-P", "-t", topic, "-K", ":", "-z", codec, "-X", "enable.idempotence=true", "-H", "codec="+codec)
		want += "k " + codec + " codec=" + codec + "\n"
	}
	if out := h.kcat("", "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", `%k %s %h\n`); out != want {
		t.Errorf("consume: %q, want %q", out, want)
	}
	if out := h.kcat("", "-Q", "-t", topic+":0:-1"); !strings.Contains(out, "offset 5") {
		t.Errorf("ask for the end: %s", out)
	}
	group := brokertest.Group(t, "kcat")
	for _, part := range []string{"none\ngzip\n", "snappy\nlz4\nzstd\n"} { // the second goes on where the first stopped
		n := strings.Count(part, "\n")
		out := h.kcat("", "-G", group, "-q", "-c", string(rune('0'+n)), "-X", "auto.offset.reset=earliest", topic)
		if out != part {
			t.Errorf("as a group: %q, want %q", out, part)
		}
	}
}

// Debian's kcat is built without libserdes, so it knows no registry: -s avro
// must say so, and a build that has it must decode.
func TestKcatDecodesAvroWhereItsBuildCan(t *testing.T) {
	asked(t)
	h := open(t, server.Auth{})
	topic := h.topic("notes")
	if _, err := h.client.RegisterText(t.Context(), topic+"-value", noteV1); err != nil {
		t.Fatal(err)
	}
	h.waybill(`{"text":"seen"}`, "publish", topic)
	out, failed := run(t, "", command(t, "kcat", "kcat"), "-b", h.brokers(), "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-s", "value=avro", "-r", h.url)
	if strings.Contains(h.kcat("", "-V"), "Avro") {
		if failed || !strings.Contains(out, `{"text": "seen"}`) {
			t.Errorf("%s", out)
		}
		return
	}
	if !failed || !strings.Contains(out, "libserdes") && !strings.Contains(out, "Avro") {
		t.Errorf("a build without Avro says %q", out)
	}
}
