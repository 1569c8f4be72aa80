package schemas

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path"
	"slices"
	"strings"
)

// maxCommits bounds how far back a history is read.
const maxCommits = 2000

// History is what the contracts of a folder have been at ref, by subject, the
// oldest first: each state that a commit on ref's own line left behind (a
// branch that was merged counts with what it merged). skipped are commits whose
// files were no contracts. A shallow clone knows only the last of it.
//
// A contract of tree, the folder as it is now, that the folder never had at ref
// has the history it had in another folder: this one may have been moved.
func History(ctx context.Context, dir, ref string, tree []Contract) (versions map[string][]Earlier, skipped []string, err error) {
	r := repository{dir: dir, blobs: map[string][]byte{}}
	if err := r.ready(ctx, ref); err != nil {
		return nil, nil, err
	}
	versions, skipped, err = r.history(ctx, ref)
	if err != nil {
		return nil, nil, err
	}
	missing := map[string]bool{}
	for _, c := range tree {
		if versions[c.Subject] == nil {
			missing[c.Subject] = true
		}
	}
	if len(missing) == 0 {
		return versions, skipped, nil
	}
	return versions, skipped, r.elsewhere(ctx, ref, missing, versions)
}

// history is that of r's folder.
func (r *repository) history(ctx context.Context, ref string) (versions map[string][]Earlier, skipped []string, err error) {
	log, err := r.git(ctx, "log", "--first-parent", "--reverse", "--format=%h %cs", fmt.Sprint("-", maxCommits), "--end-of-options", ref, "--", r.pathspec())
	if err != nil {
		return nil, nil, err
	}
	versions = map[string][]Earlier{}
	for line := range strings.Lines(string(log)) {
		name := strings.TrimSpace(line)
		commit, _, _ := strings.Cut(name, " ")
		files, err := r.files(ctx, commit)
		if err != nil {
			return nil, nil, err
		}
		contracts, err := parse(files)
		if err != nil {
			skipped = append(skipped, name)
			continue
		}
		for _, c := range contracts {
			had := versions[c.Subject]
			if n := len(had); n > 0 && same(had[n-1].Schema, c.Avro) {
				had[n-1].File = &c.Contract // whose attributes may have changed
				continue
			}
			versions[c.Subject] = append(had, Earlier{"commit " + name, c.Avro, &c.Contract})
		}
	}
	return versions, skipped, nil
}

// ready tells what is not there to compare with, and how to get it: a build that
// compares with nothing would pass whatever it is given.
func (r *repository) ready(ctx context.Context, ref string) error {
	shallow, err := r.git(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return fmt.Errorf("%s is in no git repository, or git cannot read it: %w", r.dir, err)
	}
	if strings.TrimSpace(string(shallow)) == "true" {
		return errors.New("this clone is shallow and has no history to compare with: git fetch --unshallow first (in a build: fetch-depth 0, or the like)")
	}
	if _, err := r.git(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", ref+"^{commit}"); err != nil {
		return fmt.Errorf("git knows no commit %q: fetch it first (git fetch origin), or name another with --git", ref)
	}
	return nil
}

type repository struct {
	dir   string            // git runs there
	below string            // another folder, from the top of the repository; "" for dir itself
	blobs map[string][]byte // by id: most commits leave most files as they were
}

// files are the schema files of a commit, by name.
func (r *repository) files(ctx context.Context, commit string) (map[string][]byte, error) {
	list, err := r.git(ctx, append([]string{"ls-tree", "-z"}, r.entries(commit)...)...)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for entry := range strings.SplitSeq(string(list), "\x00") {
		what, name, _ := strings.Cut(entry, "\t")
		fields := strings.Fields(what) // mode, type, id
		if len(fields) != 3 || fields[1] != "blob" || !strings.HasSuffix(name, ".avsc") {
			continue
		}
		id := fields[2]
		if _, ok := r.blobs[id]; !ok {
			if r.blobs[id], err = r.git(ctx, "cat-file", "blob", id); err != nil {
				return nil, err
			}
		}
		files[path.Base(name)] = r.blobs[id]
	}
	return files, nil
}

func (r *repository) git(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", slices.Concat([]string{"-C", r.dir, "-c", "log.showSignature=false"}, args)...) //nolint:gosec // no shell, and a ref cannot be an option
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	switch err := cmd.Run(); {
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("git is not installed: install it, or compare with a registry")
	case err != nil:
		return nil, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return out.Bytes(), nil
}
