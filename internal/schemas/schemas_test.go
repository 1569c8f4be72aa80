package schemas

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/waybillhq/waybill/registry/compat"
)

// project is a repository with a folder of contracts.
type project struct {
	t   *testing.T
	dir string
}

func newProject(t *testing.T) *project {
	t.Helper()
	p := &project{t, filepath.Join(t.TempDir(), "contracts")}
	if err := os.Mkdir(p.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	p.git("init", "-q", "-b", "main", "..")
	return p
}

func (p *project) git(args ...string) {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), "git", append([]string{"-C", p.dir, "-c", "user.name=x", "-c", "user.email=x@example.com"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_SYSTEM=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		p.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// write puts a contract with these fields besides its key.
func (p *project) write(fields string) {
	p.t.Helper()
	p.put("opened.avsc", strings.Replace(contractText, "FIELDS", fields, 1))
}

const contractText = `{"type":"record","name":"bank.Opened","topic":"bank.events","source":"/bank","key":"id",
	"fields":[{"name":"id","type":"string"}FIELDS]}`

func (p *project) put(name, text string) {
	p.t.Helper()
	if err := os.WriteFile(filepath.Join(p.dir, name), []byte(text), 0o600); err != nil {
		p.t.Fatal(err)
	}
}

func (p *project) commit() { p.git("add", "-A", "."); p.git("commit", "-qm", "x") }

func (p *project) check(ref string) Finding {
	p.t.Helper()
	tree, err := Tree(p.dir)
	if err != nil || len(tree) != 1 {
		p.t.Fatal(tree, err)
	}
	earlier, _, err := History(p.t.Context(), p.dir, ref, tree)
	if err != nil {
		p.t.Fatal(err)
	}
	return Check(tree[0], earlier[tree[0].Subject], compat.FullTransitive)
}

func TestTheTreeIsComparedWithAllThatWasCommitted(t *testing.T) {
	p := newProject(t)
	p.write(`,{"name":"note","type":"string"}`)
	p.commit()
	if f := p.check("main"); f.State != Unchanged || len(f.Breaks) > 0 || f.Against != 1 {
		t.Errorf("%+v", f)
	}
	p.write(`,{"name":"note","type":"string"},{"name":"more","type":["null","string"],"default":null}`)
	f := p.check("main")
	if f.State != Changed || len(f.Breaks) > 0 || !slices.Equal(f.Changes, []compat.Change{{Path: "more", Kind: compat.Added, Detail: "null or string, default null"}}) {
		t.Errorf("%+v", f)
	}
	p.commit()
	// The latest would allow it; the first is of another opinion.
	p.write(`,{"name":"more","type":["null","string"],"default":null}`)
	if f := p.check("main"); len(f.Breaks) == 0 || !strings.Contains(f.Breaks[0], `field "note"`) || !strings.HasPrefix(f.Breaks[0], "commit ") {
		t.Errorf("%+v", f)
	}
}

// What a branch tried on its way counts once it is merged, and not before.
func TestOnlyTheRefsOwnLineCounts(t *testing.T) {
	p := newProject(t)
	p.write("")
	p.commit()
	p.git("checkout", "-qb", "side")
	p.write(`,{"name":"tried","type":"int"}`)
	p.commit()
	p.write(`,{"name":"kept","type":"int","default":0}`)
	p.commit()
	if f := p.check("main"); len(f.Breaks) > 0 || f.Against != 1 {
		t.Errorf("against main: %+v", f)
	}
	p.git("checkout", "-q", "main")
	p.git("merge", "-q", "--no-ff", "-m", "x", "side")
	if f := p.check("main"); len(f.Breaks) > 0 || f.Against != 2 {
		t.Errorf("merged: %+v", f)
	}
}

func TestACommitThatWasNoContractIsPassedOver(t *testing.T) {
	p := newProject(t)
	p.put("opened.avsc", `{`)
	p.commit()
	p.write("")
	p.commit()
	earlier, skipped, err := History(t.Context(), p.dir, "main", nil)
	if err != nil || len(skipped) != 1 || len(earlier["bank.events-bank.Opened"]) != 1 {
		t.Errorf("%v, %v, %v", earlier, skipped, err)
	}
	if _, _, err := History(t.Context(), p.dir, "nowhere", nil); err == nil || !strings.Contains(err.Error(), "nowhere") {
		t.Errorf("an unknown ref: %v", err)
	}
	if _, _, err := History(t.Context(), p.dir, "--output="+filepath.Join(p.dir, "x"), nil); err == nil {
		t.Error("a ref that is an option, and no error")
	}
	if _, _, err := History(t.Context(), t.TempDir(), "main", nil); err == nil {
		t.Error("no repository, and no error")
	}
}

// The registry does not see which field is the key; whoever reads does.
func TestAnotherKeyBreaks(t *testing.T) {
	p := newProject(t)
	text := `{"type":"record","name":"bank.Opened","topic":"bank.events","source":"/bank","key":"id","sequence":"n",
		"fields":[{"name":"id","type":"string"},{"name":"owner","type":"string"},{"name":"n","type":"long"}]}`
	p.put("opened.avsc", text)
	p.commit()
	for from, to := range map[string]string{`"key":"id"`: `"key":"owner"`, `"sequence":"n",`: ``} {
		p.put("opened.avsc", strings.Replace(text, from, to, 1))
		if f := p.check("main"); len(f.Breaks) != 1 || f.State != Changed {
			t.Errorf("%s: %+v", to, f)
		}
	}
	p.put("opened.avsc", strings.Replace(text, `"/bank"`, `"/house"`, 1))
	if f := p.check("main"); len(f.Breaks) != 0 || f.State != Changed || len(f.Changes) != 1 {
		t.Errorf("%+v", f)
	}
}

// A clone without history has nothing to compare with, and must not pass.
func TestAShallowCloneIsRefused(t *testing.T) {
	p := newProject(t)
	p.write("")
	p.commit()
	p.write(`,{"name":"more","type":["null","string"],"default":null}`)
	p.commit()
	clone := filepath.Join(t.TempDir(), "clone")
	p.git("clone", "-q", "--depth", "1", "file://"+filepath.Dir(p.dir), clone)
	if _, _, err := History(t.Context(), filepath.Join(clone, "contracts"), "HEAD", nil); err == nil || !strings.Contains(err.Error(), "--unshallow") {
		t.Errorf("%v", err)
	}
}
