package up

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"go.yaml.in/yaml/v3"

	"github.com/waybillhq/waybill/broker/brokertest"
	"github.com/waybillhq/waybill/test/proc"
)

// notices keeps what a receiver of alerts was told.
type notices struct {
	mu   sync.Mutex
	said []string
}

func (n *notices) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.said = append(n.said, string(b))
}

func (n *notices) count(parts ...string) (c int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.said {
		if !slices.ContainsFunc(parts, func(p string) bool { return !strings.Contains(s, p) }) {
			c++
		}
	}
	return c
}

func until(t *testing.T, what string, cond func() bool) {
	t.Helper()
	limit := time.After(3 * time.Minute)
	for !cond() {
		select {
		case <-limit:
			t.Fatal("never: " + what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// A group of somebody else's that is behind with nobody in it is told once, and
// its end once, also across a restart; and what the deployment's files ask for
// is there.
func TestAGroupThatNobodyReadsIsToldOnceAcrossARestart(t *testing.T) {
	told := &notices{}
	hook := httptest.NewServer(told)
	defer hook.Close()
	file, group := filepath.Join(t.TempDir(), "waybill.yaml"), brokertest.Group(t, "strangers")
	text := `
lag: {every: 200ms}
alerts:
  rules:
    - {name: nobody, when: no members clear for 1s, severity: critical, groups: [` + group + `]}
  webhook: {url: "` + hook.URL + `"}
scale: {groups: {` + group + `: {min: 2}}}
`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	w := proc.New(t)
	w.Env = append(w.Env, "WAYBILL_CONFIG="+file)
	w.Start()
	place(t, w)
	cl, err := kgo.NewClient(kgo.SeedBrokers(w.Kafka))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	adm := kadm.NewClient(cl)
	commit := func(offsets kadm.Offsets) {
		until(t, "committed", func() bool { return adm.CommitAllOffsets(t.Context(), group, offsets) == nil })
	}
	starts, err := adm.ListStartOffsets(t.Context(), "orders.events")
	if err != nil {
		t.Fatal(err)
	}
	commit(starts.Offsets())
	until(t, "it is told", func() bool { return told.count(`"firing"`, group, "nobody") == 1 })
	status, body, err := w.Request(t.Context(), http.MethodGet, "/v1/scale/"+group, "")
	var advice struct {
		Replicas int
		Reason   string
	}
	if err != nil || status != http.StatusOK || json.Unmarshal(body, &advice) != nil || advice.Replicas != 2 || !strings.Contains(advice.Reason, "nobody reads") {
		t.Errorf("%d %s %v", status, body, err)
	}
	t.Run("the files of deploy name metrics that are there", func(t *testing.T) { checkDeploy(t, w) })
	if err := w.Stop(); err != nil {
		t.Fatal(err)
	}
	w.Start()
	until(t, "it looks again", func() bool {
		status, body, _ := w.Request(t.Context(), http.MethodGet, "/v1/lag/"+group, "")
		return status == http.StatusOK && strings.Contains(string(body), `"no members"`)
	})
	ends, err := adm.ListEndOffsets(t.Context(), "orders.events")
	if err != nil {
		t.Fatal(err)
	}
	commit(ends.Offsets())
	until(t, "its end is told", func() bool { return told.count(`"resolved"`, group) == 1 })
	if n := told.count(); n != 2 {
		t.Errorf("%d notices: %v", n, told.said)
	}
}

// absentWhenWell are metrics that have nothing to tell of a program that has
// just begun.
var absentWhenWell = []string{"waybill_consumer_dead_letters"}

// checkDeploy reads the files of deploy/ as their programs would, and holds
// every metric they name against those of a running program.
func checkDeploy(t *testing.T, w *proc.Waybill) {
	named := map[string]bool{}
	name := regexp.MustCompile(`\bwaybill_[a-z_]+`)
	take := func(expr string) {
		if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") {
			t.Errorf("not balanced: %s", expr)
		}
		for _, n := range name.FindAllString(expr, -1) {
			named[n] = true
		}
	}
	for _, expr := range slices.Concat(ruleExpressions(t), dashboardExpressions(t)) {
		take(expr)
	}
	checkScaledObject(t)
	there := map[string]bool{}
	until(t, "metrics of lag", func() bool {
		_, body, err := w.Request(t.Context(), http.MethodGet, "/metrics", "")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range name.FindAllString(string(body), -1) {
			there[n] = true
		}
		return there["waybill_consumer_in_events_per_second"]
	})
	for _, n := range slices.Sorted(maps.Keys(named)) {
		if !there[n] && !slices.Contains(absentWhenWell, n) {
			t.Errorf("%s is asked for in deploy/ and is not there", n)
		}
	}
	if len(named) < 10 {
		t.Errorf("only %d metrics are asked for", len(named))
	}
}

func deployed(t *testing.T, file string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "deploy", file))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func ruleExpressions(t *testing.T) (out []string) {
	var rules struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Record, Expr, For string
				Labels, Annotations      map[string]string
			}
		}
	}
	if err := strictly(deployed(t, "prometheus-rules.yaml"), &rules); err != nil {
		t.Fatal(err)
	}
	for _, g := range rules.Groups {
		for _, r := range g.Rules {
			if (r.Alert == "") == (r.Record == "") || r.Expr == "" || r.Alert != "" && (r.Labels["severity"] == "" || r.Annotations["summary"] == "") {
				t.Errorf("%s: %+v", g.Name, r)
			}
			if _, err := time.ParseDuration(r.For); r.For != "" && err != nil {
				t.Error(err)
			}
			out = append(out, r.Expr)
		}
	}
	return out
}

func strictly(b []byte, into any) error {
	d := yaml.NewDecoder(strings.NewReader(string(b)))
	d.KnownFields(true)
	return d.Decode(into)
}

func dashboardExpressions(t *testing.T) (out []string) {
	var d struct {
		UID    string
		Panels []struct {
			ID      int
			Title   string
			Targets []struct{ Expr, RefID string }
		}
		Templating struct {
			List []struct {
				Name  string
				Query any
			}
		}
	}
	if err := json.Unmarshal(deployed(t, "grafana-dashboard.json"), &d); err != nil {
		t.Fatal(err)
	}
	ids := map[int]bool{}
	for _, p := range d.Panels {
		if p.Title == "" || len(p.Targets) == 0 || ids[p.ID] {
			t.Errorf("%+v", p)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			out = append(out, target.Expr)
		}
	}
	if d.UID == "" || len(out) < 10 || len(d.Templating.List) != 2 {
		t.Errorf("%s with %d expressions", d.UID, len(out))
	}
	return out
}

func checkScaledObject(t *testing.T) {
	var o struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Spec       struct {
			Triggers []struct {
				Type     string
				Metadata map[string]string
			}
		}
	}
	if err := yaml.Unmarshal(deployed(t, "keda-scaledobject.yaml"), &o); err != nil {
		t.Fatal(err)
	}
	if o.APIVersion != "keda.sh/v1alpha1" || o.Kind != "ScaledObject" || len(o.Spec.Triggers) != 1 {
		t.Fatalf("%+v", o)
	}
	if m := o.Spec.Triggers[0].Metadata; m["valueLocation"] != "replicas" || m["targetValue"] != "1" || !strings.Contains(m["url"], "/v1/scale/") {
		t.Errorf("%+v", m)
	}
}
