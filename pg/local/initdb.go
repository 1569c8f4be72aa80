//go:build unix

package local

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// initialise makes the data folder. It is built under another name and renamed
// when complete, so that a kill in between leaves nothing that looks like data.
func (s *Server) initialise(ctx context.Context, bin binaries, at place) error {
	if err := removeLeftovers(at); err != nil {
		return err
	}
	work, err := os.MkdirTemp(at.home, "init-")
	if err != nil {
		return fmt.Errorf("make folder for initdb: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }()
	password := filepath.Join(work, "password")
	if err := os.WriteFile(password, []byte(s.secret.Admin+"\n"), 0o600); err != nil {
		return fmt.Errorf("hand password to initdb: %w", err)
	}
	for _, path := range []string{password, work} { // the folder last: until then nobody else puts a link into it
		if err := s.owner.give(path); err != nil {
			return err
		}
	}
	data := filepath.Join(work, "data")
	if err := s.runInitdb(ctx, bin, data, password); err != nil {
		return err
	}
	if err := writeAccess(data, s.owner); err != nil {
		return err
	}
	if err := os.Rename(data, at.data()); err != nil {
		return fmt.Errorf("move data into place: %w", err)
	}
	return nil
}

// access is who may connect. "all" does not stand for physical replication,
// which hands out a copy of every database and of the passwords' hashes: that is
// the administrator's. The application's role reads the changes of its own
// database, which counts as a connection to that.
const access = `# TYPE  DATABASE     USER        ADDRESS       METHOD
local   all          all                       scram-sha-256
host    all          all         127.0.0.1/32  scram-sha-256
host    all          all         ::1/128       scram-sha-256
local   replication  ` + adminRole + `                  scram-sha-256
host    replication  ` + adminRole + `    127.0.0.1/32  scram-sha-256
host    replication  ` + adminRole + `    ::1/128       scram-sha-256
`

// writeAccess replaces what initdb wrote.
func writeAccess(data string, own *owner) error {
	if err := writeDurably(filepath.Join(data, "pg_hba.conf"), []byte(access), own); err != nil {
		return fmt.Errorf("write who may connect: %w", err)
	}
	return nil
}

func removeLeftovers(at place) error {
	left, err := filepath.Glob(filepath.Join(at.home, "init-*"))
	if err != nil {
		return fmt.Errorf("look for leftovers of initdb: %w", err)
	}
	for _, dir := range left {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove leftover of initdb: %w", err)
		}
	}
	return nil
}

// runInitdb skips initdb's own fsync: sync does it while the server starts.
func (s *Server) runInitdb(ctx context.Context, bin binaries, data, password string) error {
	args := []string{
		"--pgdata=" + data, "--username=" + adminRole, "--pwfile=" + password,
		"--auth=scram-sha-256", "--encoding=UTF8", "--no-sync", "--no-instructions",
	}
	out, err := s.execInitdb(ctx, bin, append(args, locale(bin.major)...))
	if err != nil && ctx.Err() == nil {
		// Bytewise throughout, where the machine lacks the locale.
		_ = os.RemoveAll(data)
		out, err = s.execInitdb(ctx, bin, append(args, "--locale=C"))
	}
	if err != nil {
		return fmt.Errorf("initdb: %w: %s", err, out)
	}
	return nil
}

func (s *Server) execInitdb(ctx context.Context, bin binaries, args []string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, bin.path("initdb"), args...) //nolint:gosec // a found program
	cmd.Dir, cmd.Env, cmd.SysProcAttr = "/", cleanEnv(), s.owner.attr()
	return cmd.CombinedOutput()
}

// locale sorts by bytes, the same everywhere and fast, and knows the letters
// of all languages where it can.
func locale(major int) []string {
	switch {
	case major >= 17:
		return []string{"--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"}
	case runtime.GOOS == "linux":
		return []string{"--locale=C", "--lc-ctype=C.UTF-8"}
	}
	return []string{"--locale=C"}
}
