package up

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/pg/pgtest"
	"github.com/waybillhq/waybill/test/proc"
)

// others has w use a database of another server and, unless the tests run on
// a Kafka, broker and registry of another process.
func others(t *testing.T, w *proc.Waybill) (dsn string) {
	t.Helper()
	dsn = pgtest.New(t)
	w.Env = append(w.Env, "WAYBILL_DATABASE_URL="+dsn)
	if !brokertest.Kafka() {
		b := proc.Broker(t)
		w.Env = append(w.Env, "WAYBILL_REGISTRY_URL="+b.Registry, "WAYBILL_KAFKA_BROKERS="+b.Kafka)
	}
	return dsn
}

func TestEnginesOfOthersAreUsed(t *testing.T) {
	w := proc.New(t)
	dsn := others(t, w)
	for range 2 { // on what is there already, too
		w.Start()
		if w.Database != dsn || w.Postmaster() != 0 {
			t.Errorf("uses %s, its own Postgres is %d", w.Database, w.Postmaster())
		}
		events := listen(t, w, "")
		id := place(t, w)
		if e := await(t, events, "the order's event"); e.Subject != id {
			t.Errorf("event of %s, want %s", e.Subject, id)
		}
		if strings.Contains(w.Output(), dsn) || !brokertest.Kafka() && strings.Contains(w.Output(), "single node") {
			t.Errorf("the banner tells another server's password, or a limit of our own broker:\n%s", w.Output())
		}
		if err := w.Stop(); err != nil {
			t.Fatalf("stop: %v\n%s", err, w.Output())
		}
	}
}

func TestEnginesThatDoNotAnswerAreNamed(t *testing.T) {
	const nowhere = "127.0.0.1:1"
	w := proc.New(t)
	env := w.Env
	for variable, value := range map[string]string{
		"WAYBILL_DATABASE_URL":  "postgres://me:hush@" + nowhere + "/x",
		"WAYBILL_KAFKA_BROKERS": nowhere,
		"WAYBILL_REGISTRY_URL":  "http://" + nowhere,
	} {
		w.Env = append(env[:len(env):len(env)], variable+"="+value)
		if err := w.Launch(); err != nil {
			t.Fatal(err)
		}
		code, out := exitCode(t, w), w.Output()
		if code != 1 || !strings.Contains(out, nowhere) || !strings.Contains(out, variable) || strings.Contains(out, "hush") {
			t.Errorf("%s: exit code %d\n%s", variable, code, out)
		}
		checkNothingRuns(t, w)
	}
}

// Each role in a process of its own, as in production.
func TestRolesRunApart(t *testing.T) {
	if brokertest.Kafka() {
		t.Skip("needs a registry that outlives `waybill up`")
	}
	w := proc.New(t)
	others(t, w)
	w.Start() // makes the demonstration's key
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	at := strings.TrimPrefix(w.HTTP, "http://")
	for _, role := range []string{"analytics", "relay", "api"} {
		r := proc.Role(t, role, "--listen", at)
		r.Env = w.Env
		if err := r.Launch(); err != nil {
			t.Fatal(err)
		}
	}
	ready(t, w)
	events := listen(t, w, "")
	id := place(t, w)
	if e := await(t, events, "the order's event"); e.Subject != id {
		t.Errorf("event of %s, want %s", e.Subject, id)
	}
}

// ready waits until the API answers that all is well.
func ready(t *testing.T, w *proc.Waybill) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		status, body, err := w.Request(ctx, http.MethodGet, "/readyz", "")
		if err == nil && status == http.StatusOK {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("not ready within 30 s: %d %s %v", status, body, err)
		}
	}
}
