package floors

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// docs/GUARANTEES.md may only name tests that exist: a claim whose test was
// renamed or removed would go on looking held.
func TestGuaranteesNameTestsThatExist(t *testing.T) {
	root := filepath.Join("..", "..")
	doc, err := os.ReadFile(filepath.Join(root, "docs", "GUARANTEES.md"))
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`").FindAllSubmatch(doc, -1)
	if len(names) < 20 {
		t.Fatalf("only %d tests are named", len(names))
	}
	var code bytes.Buffer
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		code.Write(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range names {
		if !bytes.Contains(code.Bytes(), []byte("func "+string(n[1])+"(")) {
			t.Errorf("docs/GUARANTEES.md names %s, which does not exist", n[1])
		}
	}
}
