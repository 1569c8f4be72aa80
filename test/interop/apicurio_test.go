package interop

import (
	"errors"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/avro"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/event"
	"github.com/waybillhq/waybill/registry"
	"github.com/waybillhq/waybill/test/proc"
)

// apicurio starts Apicurio's registry, with its schemas in memory, and returns
// where it speaks Confluent's API.
func apicurio(t *testing.T) string {
	t.Helper()
	asked(t)
	if brokertest.Kafka() {
		t.Skip("it needs no broker: run without a Kafka it says all it can")
	}
	java := command(t, "java", "default-jdk-headless")
	jars, err := filepath.Glob(filepath.Join(part(t, "apicurio"), "*-runner.jar"))
	if err != nil || len(jars) != 1 {
		t.Fatalf("no runner among the files of Apicurio: %v, %v", jars, err)
	}
	address := proc.Free(t)
	log, err := os.Create(filepath.Join(t.TempDir(), "apicurio.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // the process has its own
	// A shell ends it when this process is gone, however it went.
	cmd := exec.Command("/bin/sh", "-c", `exec 3<&0; "$@" 3<&- & p=$!; (read -r _ <&3; kill -9 $p) & wait $p`, "sh", java, "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dquarkus.http.host=127.0.0.1", "-Dquarkus.http.port="+proc.Port(address), "-jar", jars[0])
	cmd.Stdout, cmd.Stderr = log, log
	life, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() {
		_ = life.Close()
		<-ended
	})
	url := "http://" + address + "/apis/ccompat/v7"
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	late := time.After(2 * time.Minute)
	for !answers(url + "/subjects") {
		select {
		case <-tick.C:
			continue
		case <-ended:
		case <-late:
		}
		said, _ := os.ReadFile(log.Name())
		t.Fatalf("Apicurio did not start: %s", said)
	}
	return url
}

func answers(url string) bool {
	resp, err := http.Get(url)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}

// Our client speaks to Apicurio's registry as it does to ours. The test is one
// since the server takes long to start.
func TestOurClientOnApicurio(t *testing.T) {
	url := apicurio(t)
	ctx := t.Context()
	c, err := registry.New(url, registry.Config{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)

	v1, v2, bad := contract(t, noteV1), contract(t, noteV2), contract(t, noteV3)
	first, err := c.Register(ctx, "FULL_TRANSITIVE", v1)
	if err != nil {
		t.Fatalf("register: %v", err)
	}
	second, err := c.Register(ctx, "FULL_TRANSITIVE", v2)
	if err != nil {
		t.Fatalf("register the second version: %v", err)
	}
	if again, err := c.Register(ctx, "FULL_TRANSITIVE", v1); err != nil || again[v1.Fingerprint] != first[v1.Fingerprint] {
		t.Errorf("register again: %v, %v", again, err)
	}
	var incompatible *registry.IncompatibleError
	if _, err := c.Register(ctx, "FULL_TRANSITIVE", bad); !errors.As(err, &incompatible) || len(incompatible.Reasons) == 0 {
		t.Errorf("register what may not follow: %v", err)
	}
	if _, err := c.RegisterText(ctx, "bad", `{"type":"nothing"}`); !errors.Is(err, registry.ErrInvalidSchema) {
		t.Errorf("register what is no schema: %v", err)
	}
	if subjects, err := c.Subjects(ctx, "notes-"); err != nil || len(subjects) != 1 || subjects[0] != v1.Subject() {
		t.Errorf("subjects: %v, %v", subjects, err)
	}

	value, err := c.EncodeJSON(ctx, v1.Subject(), []byte(`{"text":"hello","stars":5}`))
	if err != nil {
		t.Fatalf("encode with the latest version: %v", err)
	}
	d := registry.NewDecoder(c)
	if id, _, err := registry.SplitHeader(value); err != nil || id != second[v2.Fingerprint] {
		t.Errorf("encoded with schema %d, %v; want %d", id, err, second[v2.Fingerprint])
	}
	if info, text, err := d.DecodeAny(ctx, value); err != nil || string(text) != `{"text":"hello","stars":5}` || info.Name != "interop.Note" {
		t.Errorf("decode: %+v %s %v", info, text, err)
	}
	var note struct {
		Text string `avro:"text"`
	}
	if err := d.Decode(ctx, value, &note, v1.Schema); err != nil || note.Text != "hello" {
		t.Errorf("decode as a reader of the first version: %+v, %v", note, err)
	}
	if err := d.Decode(ctx, registry.AppendHeader(nil, 999), &note, nil); !errors.Is(err, registry.ErrUnknownSchema) {
		t.Errorf("decode with an id that nobody gave: %v", err)
	}
	var unknown *registry.UnknownSubjectError
	if _, err := c.EncodeJSON(ctx, "nobody", []byte(`{}`)); !errors.As(err, &unknown) {
		t.Errorf("encode for a subject that is not there: %v", err)
	}
	var mismatch *avro.CompatibilityError
	if err := d.Decode(ctx, value, &note, bad.Schema); !errors.As(err, &mismatch) {
		t.Errorf("decode as a reader who cannot: %v", err)
	}
	// Asked for the level of a subject that has none, Apicurio answers with the
	// global one, as if it were the subject's own. So ours is not set there.
	old := contract(t, strings.ReplaceAll(noteV1, "Note", "Old"))
	if _, err := c.RegisterText(ctx, old.Subject(), old.Text); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Register(ctx, "FULL_TRANSITIVE", contract(t, strings.ReplaceAll(noteV3, "Note", "Old"))); err != nil {
		t.Errorf("Apicurio tells levels apart now, see docs/interop.md: %v", err)
	}
}

func contract(t *testing.T, schema string) *event.Contract {
	t.Helper()
	c, err := event.NewContract("notes", "/notes", schema)
	if err != nil {
		t.Fatal(err)
	}
	return c
}
