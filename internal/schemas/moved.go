package schemas

import (
	"context"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// maxFolders bounds where a contract is looked for that a folder never had.
const maxFolders = 200

// elsewhere adds to versions the histories of missing subjects that are in
// other folders at ref. Where several have one, the first in order counts: a
// subject means the same everywhere.
func (r *repository) elsewhere(ctx context.Context, ref string, missing map[string]bool, versions map[string][]Earlier) error {
	folders, err := r.folders(ctx, ref)
	if err != nil {
		return err
	}
	for _, dir := range folders {
		other := repository{dir: r.dir, below: dir, blobs: r.blobs}
		had, _, err := other.history(ctx, ref)
		if err != nil {
			return err
		}
		for subject, earlier := range had {
			if missing[subject] {
				versions[subject] = earlier
				delete(missing, subject)
			}
		}
		if len(missing) == 0 {
			return nil
		}
	}
	return nil
}

// folders are those with schema files at ref, from the top of the repository,
// without r's own.
func (r *repository) folders(ctx context.Context, ref string) ([]string, error) {
	own, err := r.git(ctx, "rev-parse", "--show-prefix")
	if err != nil {
		return nil, err
	}
	list, err := r.git(ctx, "ls-tree", "-r", "-z", "--full-tree", "--name-only", "--end-of-options", ref)
	if err != nil {
		return nil, err
	}
	var out []string
	for name := range strings.SplitSeq(string(list), "\x00") {
		dir := path.Dir(name)
		if strings.HasSuffix(name, ".avsc") && dir != path.Clean(strings.TrimSuffix(string(own), "\n")) && !slices.Contains(out, dir) {
			out = append(out, dir)
		}
	}
	if len(out) > maxFolders {
		return nil, fmt.Errorf("%s has a contract that it never had at %s, and %d other folders have schema files; more than %d are not searched for it: give --git a ref at which the folder has its place", filepath.Clean(r.dir), ref, len(out), maxFolders)
	}
	return out, nil
}

// pathspec names the schema files of r's folder. Those of folders below may be
// among them, which costs a look and no more.
func (r *repository) pathspec() string {
	switch r.below {
	case "":
		return "*.avsc"
	case ".":
		return ":(top,glob)*.avsc"
	}
	return ":(top,glob)" + literal.Replace(r.below) + "/*.avsc"
}

// literal keeps a folder's name from being a pattern.
var literal = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`)

// entries are the arguments that list r's folder at a commit.
func (r *repository) entries(commit string) []string {
	switch r.below {
	case "":
		return []string{commit, "./"}
	case ".":
		return []string{"--full-tree", commit}
	}
	return []string{"--full-tree", commit, "--", r.below + "/"}
}
