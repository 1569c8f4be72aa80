package schemas

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	before = `,{"name":"note","type":"string"}`
	broken = `,{"name":"more","type":["null","string"],"default":null}`
)

// A contract is known by its subject: what its file is called, and was, does
// not matter.
func TestAFileMayBeRenamedDeletedAndComeAgain(t *testing.T) {
	p := newProject(t)
	p.write(before)
	p.commit()
	p.git("mv", "opened.avsc", "abertura é.avsc") // which git writes in quotes, unless told not to
	p.commit()
	p.remove("abertura é.avsc")
	p.put("other.txt", "")
	p.commit()
	p.write(broken)
	if f := p.check("main"); f.Against != 1 || len(f.Breaks) == 0 {
		t.Errorf("%+v", f)
	}
}

func (p *project) remove(name string) {
	p.t.Helper()
	if err := os.Remove(filepath.Join(p.dir, name)); err != nil {
		p.t.Fatal(err)
	}
}

func TestFilesOfAnyNameAreRead(t *testing.T) {
	p := newProject(t)
	p.put(`ação "1".avsc`, strings.Replace(contractText, "FIELDS", before, 1))
	p.commit()
	p.remove(`ação "1".avsc`)
	p.write(broken)
	if f := p.check("main"); f.Against != 1 || len(f.Breaks) == 0 {
		t.Errorf("%+v", f)
	}
}

// A folder that was moved must not be taken for a new one: its contracts are
// compared with what they were where they came from.
func TestAFolderThatWasMovedKeepsItsHistory(t *testing.T) {
	p := newProject(t)
	p.write(before)
	p.commit()
	p.write(before + `,{"name":"more","type":["null","string"],"default":null}`)
	p.commit()
	moved := filepath.Join(filepath.Dir(p.dir), "events", "v[1]*")
	if err := os.MkdirAll(filepath.Dir(moved), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(p.dir, moved); err != nil {
		t.Fatal(err)
	}
	p.dir = moved
	if f := p.check("main"); f.Against != 2 || len(f.Breaks) > 0 || f.State != Unchanged {
		t.Errorf("moved: %+v", f)
	}
	p.write(broken)
	if f := p.check("main"); f.Against != 2 || len(f.Breaks) == 0 {
		t.Errorf("moved and broken: %+v", f)
	}
}

// What people have git say of each commit is no commit.
func TestSettingsOfGitDoNotReachTheHistory(t *testing.T) {
	p := newProject(t)
	p.write(before)
	p.commit()
	for _, setting := range [][2]string{{"log.showSignature", "true"}, {"color.ui", "always"}, {"log.decorate", "full"}, {"log.follow", "true"}, {"core.quotePath", "true"}, {"core.pager", "false"}} {
		p.git("config", setting[0], setting[1])
	}
	p.write(broken)
	if f := p.check("main"); f.Against != 1 || len(f.Breaks) == 0 {
		t.Errorf("%+v", f)
	}
}
