//go:build unix

package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"
)

// walBudget holds what the server may keep for slots against the disk it keeps
// it on.
func walBudget(ctx context.Context, s *Subject) ([]Finding, error) {
	var limit *int64
	var kept int64
	err := s.db.QueryRow(ctx, `SELECT (SELECT nullif(setting::bigint, -1) * 1024 * 1024 FROM pg_settings WHERE name = 'max_slot_wal_keep_size'),
		coalesce((SELECT max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) FROM pg_replication_slots), 0)::bigint`).Scan(&limit, &kept)
	if err != nil {
		return nil, err
	}
	free, why := s.freeForWAL(ctx)
	disk := "free on its disk: unknown, " + why
	if free != nil {
		disk = size(free) + " free on its disk"
	}
	const (
		raise  = "ALTER SYSTEM SET max_slot_wal_keep_size = '%dGB'; SELECT pg_reload_conf()"
		unread = "while no relay reads, the server keeps WAL until its disk is full, and then stops"
	)
	switch {
	case limit == nil:
		sensible := int64(8)
		if free != nil {
			sensible = max(1, (*free+kept)/4>>30)
		}
		return warn("max_slot_wal_keep_size is not set, "+disk, unread, fmt.Sprintf(raise, sensible)), nil
	case free == nil:
		return ok("max_slot_wal_keep_size is %s; %s: compare it with the server's disk", size(limit), disk), nil
	case *limit-kept > *free:
		return warn(fmt.Sprintf("max_slot_wal_keep_size is %s, %s kept already, %s", size(limit), size(&kept), disk),
			"the disk is full before the server gives a slot up, and a full disk stops the server",
			"make room on the disk, or "+fmt.Sprintf(raise, max(1, (*free+kept)/2>>30))), nil
	}
	return ok("max_slot_wal_keep_size is %s, %s", size(limit), disk), nil
}

// freeForWAL is what an unprivileged process may still write where the
// server's WAL is, or why that is unknown.
func (s *Subject) freeForWAL(ctx context.Context) (free *int64, why string) {
	dir, err := s.localData(ctx)
	if err != nil {
		return nil, err.Error()
	}
	var st syscall.Statfs_t
	if err := syscall.Statfs(filepath.Join(dir, "pg_wal"), &st); err != nil {
		return nil, "its folder cannot be looked into from here"
	}
	n := int64(st.Bavail) * int64(st.Bsize) //nolint:unconvert // other systems have other types
	return &n, ""
}

var errNotHere = errors.New("the server's disk is not this machine's, or its folder is closed to this user")

// localData is the folder of the server, if that is one of this machine. A path
// alone proves nothing: the server may run in a container, or elsewhere behind
// a tunnel. The start in its pid file does.
func (s *Subject) localData(ctx context.Context) (dir string, err error) {
	var started time.Time
	var port int
	err = s.db.QueryRow(ctx, `SELECT pg_postmaster_start_time(), current_setting('port')::int`).Scan(&started, &port)
	if err != nil {
		return "", err
	}
	dirs := []string{s.DataDir}
	var told string
	asked := s.db.QueryRow(ctx, `SELECT current_setting('data_directory')`).Scan(&told) // told to few
	if asked == nil {
		dirs = append(dirs, told)
	}
	for _, dir := range dirs {
		if dir != "" && wrote(filepath.Join(dir, "postmaster.pid"), started, port) {
			return dir, nil
		}
	}
	if code(asked) == insufficientPrivilege {
		return "", fmt.Errorf("this role may not ask where that is: GRANT pg_read_all_settings TO %s", ident(s.db.Config().ConnConfig.User))
	}
	return "", errNotHere
}

const insufficientPrivilege = "42501"

// wrote tells whether a pid file is of the server that started then, on that
// port: its third and fourth lines.
func wrote(path string, started time.Time, port int) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }()
	var lines []string
	for s := bufio.NewScanner(f); s.Scan() && len(lines) < 4; {
		lines = append(lines, s.Text())
	}
	if len(lines) < 4 || lines[3] != strconv.Itoa(port) {
		return false
	}
	at, err := strconv.ParseInt(lines[2], 10, 64)
	const apart = 10 * time.Second // it writes the file first, and calls itself started later
	return err == nil && started.Sub(time.Unix(at, 0)).Abs() <= apart
}
