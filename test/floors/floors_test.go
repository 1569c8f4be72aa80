// Package floors holds the rule of the house: imports run downward only.
package floors

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/waybillhq/waybill"

// floors lists the house from the ground up. A package may import packages of
// its own floor or of lower ones, directly or through others. The longest
// prefix counts.
var floors = []struct {
	floor    int
	prefixes []string
}{
	{1, []string{"event", "pg", "incident"}},
	{2, []string{"registry", "broker", "alert"}},
	{3, []string{"outbox", "cdc", "consumer", "queue", "lag"}},
	{4, []string{"push", "webhook", "projection", "saga", "journey"}},
	{5, []string{"logistica"}},
	{6, []string{"cmd", "internal", "bench", "test"}},
}

// exact are floors of single packages that stand elsewhere than their folder.
// The write side of the outbox stands on the ground, so that an application
// which only writes events links no broker.
var exact = map[string]int{"outbox": 1, "outbox/message": 1, "internal/avrogen": 2, "internal/avrogen/gen": 2}

// kin are packages of one floor that may know each other.
func kin(a, b string) bool { return top(a) == top(b) || floorOf(a) == 6 }

func top(pkg string) string { return strings.SplitN(pkg, "/", 2)[0] }

func floorOf(pkg string) int {
	if f, ok := exact[pkg]; ok {
		return f
	}
	for _, f := range floors {
		if slices.Contains(f.prefixes, top(pkg)) {
			return f.floor
		}
	}
	return 0
}

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Imports,Deps", module+"/...")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	d := json.NewDecoder(strings.NewReader(string(out)))
	for {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func local(importPath string) (string, bool) {
	return strings.CutPrefix(importPath, module+"/")
}

func TestImportsRunDownward(t *testing.T) {
	for _, p := range packages(t) {
		from, ok := local(p.ImportPath)
		if !ok {
			continue
		}
		mine := floorOf(from)
		if mine == 0 {
			t.Errorf("%s stands on no floor: give it one here and in docs/DESIGN.md", from)
			continue
		}
		for _, dep := range p.Deps { // transitive
			to, ok := local(dep)
			if ok && floorOf(to) > mine {
				t.Errorf("%s (floor %d) reaches up to %s (floor %d)", from, mine, to, floorOf(to))
			}
		}
		for _, dep := range p.Imports {
			to, ok := local(dep)
			if ok && floorOf(to) == mine && !kin(from, to) && !sideways[top(from)+" "+top(to)] {
				t.Errorf("%s imports %s, its neighbour on floor %d", from, to, mine)
			}
		}
	}
}

// sideways are neighbours that may know each other, with the reason.
var sideways = map[string]bool{
	"registry broker": true, // schemas are kept in a topic
	"outbox event":    true, // the write side stands on the ground floor with it
	"incident pg":     true, // its migration
}

func TestWriteSideLinksNoBroker(t *testing.T) {
	for _, p := range packages(t) {
		if p.ImportPath != module+"/outbox" {
			continue
		}
		for _, dep := range p.Deps {
			if strings.HasPrefix(dep, "github.com/twmb/franz-go") || dep == path.Join(module, "broker") || dep == path.Join(module, "registry") {
				t.Errorf("the outbox's write side links %s", dep)
			}
		}
		return
	}
	t.Fatal("package outbox was not listed")
}

func TestOnlyWiringImportsConfig(t *testing.T) {
	for _, p := range packages(t) {
		from, _ := local(p.ImportPath)
		for _, dep := range p.Imports {
			if dep == module+"/internal/config" && from != "internal/app" && from != "internal/cli" {
				t.Errorf("%s imports internal/config; only internal/app and internal/cli may", from)
			}
		}
	}
}
