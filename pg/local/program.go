//go:build unix

package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Program is where one of Postgres' own programs is, such as pg_recvlogical:
// beside the server that [Start] would take, else on PATH, where those of an
// installation without a server are.
func Program(ctx context.Context, name string) (string, error) {
	for b := range usable(ctx, folders(filepath.SplitList(os.Getenv("PATH")))) { //nolint:forbidigo // as exec.LookPath does
		if path, err := exec.LookPath(b.path(name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is neither beside a Postgres server nor on PATH: install Postgres' client programs", name)
	}
	return path, nil
}
