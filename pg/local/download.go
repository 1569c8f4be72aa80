//go:build unix

package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"time"

	embedded "github.com/fergusstrange/embedded-postgres"
)

// download fetches binaries into the cache, for machines with none installed.
// The library can only fetch by starting a server; a throw-away one it is. Run
// as root that start fails, but by then the programs are there.
func (s *Server) download(ctx context.Context, major int) (binaries, error) {
	version, err := downloadable(major)
	if err != nil {
		return binaries{}, err
	}
	root, err := s.cacheRoot()
	if err != nil {
		return binaries{}, err
	}
	dir := filepath.Join(root, string(version))
	for found := range usable(ctx, []string{filepath.Join(dir, "bin")}) {
		return found, nil
	}
	if s.cfg.DownloadTimeout < 0 {
		return binaries{}, errors.New("downloads are switched off")
	}
	s.cfg.Logger.InfoContext(ctx, "no postgres installed, fetching it", "version", version, "to", dir)
	fetchErr := within(ctx, s.cfg.DownloadTimeout, func() error { return fetch(ctx, root, dir, version) })
	for found := range usable(ctx, []string{filepath.Join(dir, "bin")}) {
		return found, nil
	}
	return binaries{}, errors.Join(errors.New("nothing usable arrived"), fetchErr)
}

func downloadable(major int) (embedded.PostgresVersion, error) {
	versions := map[int]embedded.PostgresVersion{
		0: embedded.V17, 14: embedded.V14, 15: embedded.V15, 16: embedded.V16, 17: embedded.V17, 18: embedded.V18,
	}
	v, ok := versions[major]
	if !ok {
		return "", fmt.Errorf("%w: the data is of postgres %d", ErrVersion, major)
	}
	return v, nil
}

func (s *Server) cacheRoot() (string, error) {
	root := s.cfg.CacheDir
	if root == "" {
		root = "/var/cache/waybill/postgres" // root's own cache is closed to the server's user
		if s.owner == nil {
			cache, err := os.UserCacheDir()
			if err != nil {
				return "", fmt.Errorf("find cache folder: %w", err)
			}
			root = filepath.Join(cache, "waybill", "postgres")
		}
	}
	if err := os.MkdirAll(root, 0o755); err != nil { //nolint:gosec // programs, for the server's user to run
		return "", fmt.Errorf("make cache folder: %w", err)
	}
	return root, nil
}

func fetch(ctx context.Context, root, dir string, version embedded.PostgresVersion) error {
	scratch, err := os.MkdirTemp(root, "fetch-")
	if err != nil {
		return fmt.Errorf("make scratch folder: %w", err)
	}
	defer func() { _ = os.RemoveAll(scratch) }()
	port, err := freePort(ctx)
	if err != nil {
		return err
	}
	server := embedded.NewDatabase(embedded.DefaultConfig().
		Version(version).CachePath(root).BinariesPath(dir).
		RuntimePath(filepath.Join(scratch, "run")).DataPath(filepath.Join(scratch, "data")).
		Port(uint32(port)).Logger(io.Discard))
	if err := server.Start(); err != nil {
		return err
	}
	return server.Stop()
}

// within gives up on work that cannot be cancelled. The goroutine ends when
// the library's transfer does.
func within(ctx context.Context, limit time.Duration, work func() error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- work() }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// installHint is the command that puts Postgres on this machine.
func installHint(major int) string {
	if runtime.GOOS == "darwin" {
		return fmt.Sprintf("install it with: brew install postgresql@%d", max(major, 17))
	}
	for _, m := range []struct{ tool, command string }{
		{"/usr/bin/apt-get", "apt-get install postgresql"},
		{"/usr/bin/dnf", "dnf install postgresql-server"},
		{"/sbin/apk", "apk add postgresql"},
		{"/usr/bin/pacman", "pacman -S postgresql"},
	} {
		if _, err := os.Stat(m.tool); err != nil {
			continue
		}
		if major != 0 && m.tool == "/usr/bin/apt-get" {
			return fmt.Sprintf("install it with: %s-%d", m.command, major)
		}
		return "install it with: " + m.command
	}
	return "install PostgreSQL's server from https://www.postgresql.org/download/"
}

func freePort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().(*net.TCPAddr).Port, nil
}
