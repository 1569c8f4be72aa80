//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// minMajor is the oldest Postgres with what logical decoding here needs.
const minMajor = 14

// ErrVersion means that no installed Postgres fits the data.
var ErrVersion = errors.New("no fitting postgres version")

// binaries is a folder whose postgres and initdb belong together.
type binaries struct {
	dir   string
	major int
}

func (b binaries) path(name string) string { return filepath.Join(b.dir, name) }

// findBinaries picks the folder to run: the one for major when data exists,
// else the first on PATH, else the newest.
func (s *Server) findBinaries(ctx context.Context, major int) (binaries, error) {
	var found []binaries
	folders := s.cfg.folders
	if s.cfg.Binaries != "" {
		folders = []string{s.cfg.Binaries}
	}
	for b := range usable(ctx, folders) {
		if b.major == major || major == 0 {
			return b, nil
		}
		found = append(found, b)
	}
	if major != 0 && len(found) > 0 {
		return binaries{}, fmt.Errorf("%w: the data is of postgres %d, installed is %s; %s, or move the directory away",
			ErrVersion, major, list(found), installHint(major))
	}
	if s.cfg.Binaries != "" {
		return binaries{}, fmt.Errorf("no postgres %d or newer, with its initdb, in %s", minMajor, s.cfg.Binaries)
	}
	if err := ctx.Err(); err != nil { // then none was found because none was asked
		return binaries{}, err
	}
	b, err := s.download(ctx, major)
	if err != nil {
		return binaries{}, fmt.Errorf("no postgres %d or newer on PATH or in the usual folders, and fetching one failed (%w); %s",
			minMajor, err, installHint(major))
	}
	return b, nil
}

// folders lists where to look: PATH in its order, then known places, newest
// first.
func folders(path []string) []string {
	var known []string
	for _, pattern := range []string{
		"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/usr/local/pgsql/bin",
		"/opt/homebrew/opt/postgresql@*/bin", "/usr/local/opt/postgresql@*/bin",
		"/opt/homebrew/opt/postgresql/bin", "/Applications/Postgres.app/Contents/Versions/*/bin",
	} {
		match, _ := filepath.Glob(pattern)
		known = append(known, match...)
	}
	slices.SortStableFunc(known, func(a, b string) int { return numberIn(b) - numberIn(a) })
	return append(slices.Clone(path), known...)
}

var digits = regexp.MustCompile(`\d+`)

func numberIn(path string) int {
	n, _ := strconv.Atoi(digits.FindString(path))
	return n
}

// usable are the folders that hold both programs, asked one by one for their
// version. A link on PATH is followed: initdb looks for its shared files beside
// the real program.
func usable(ctx context.Context, dirs []string) iter.Seq[binaries] {
	return func(yield func(binaries) bool) {
		seen := map[string]bool{}
		for _, dir := range dirs {
			real, err := filepath.EvalSymlinks(filepath.Join(dir, "postgres"))
			if err != nil || seen[filepath.Dir(real)] {
				continue
			}
			b := binaries{dir: filepath.Dir(real)}
			seen[b.dir] = true
			if _, err := exec.LookPath(b.path("initdb")); err != nil {
				continue
			}
			b.major, err = majorOf(ctx, b.path("postgres"))
			if err == nil && b.major >= minMajor && !yield(b) {
				return
			}
		}
	}
}

var versionText = regexp.MustCompile(`\(PostgreSQL\) (\d+)`)

func majorOf(ctx context.Context, postgres string) (int, error) {
	cmd := exec.CommandContext(ctx, postgres, "--version")
	// A group of its own: ended by the Ctrl-C that ends us, it would look as if
	// no Postgres were installed, and a download would begin.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("ask %s for its version: %w", postgres, err)
	}
	m := versionText.FindSubmatch(out)
	if m == nil {
		return 0, fmt.Errorf("ask %s for its version: got %q", postgres, out)
	}
	return strconv.Atoi(string(m[1]))
}

// dataMajor is the version that wrote the data.
func dataMajor(data string) (int, error) {
	raw, err := os.ReadFile(filepath.Join(data, "PG_VERSION"))
	if err != nil {
		return 0, fmt.Errorf("read the data's version: %w", err)
	}
	major, err := strconv.Atoi(strings.TrimSpace(string(raw)))
	if err != nil {
		return 0, fmt.Errorf("%w: the data is of postgres %q", ErrVersion, strings.TrimSpace(string(raw)))
	}
	return major, nil
}

func list(found []binaries) string {
	var names []string
	for _, b := range found {
		names = append(names, fmt.Sprintf("%d in %s", b.major, b.dir))
	}
	return strings.Join(names, ", ")
}
