//go:build unix

package local

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

const settingsFile = "waybill.conf"

// baseSettings make the server durable, reachable from this machine alone, and
// ready for logical replication that cannot fill the disk.
func baseSettings(port int) map[string]string {
	return map[string]string{ //nolint:gosec // password_encryption is no password
		"listen_addresses":        "127.0.0.1",
		"port":                    strconv.Itoa(port),
		"unix_socket_directories": "", // deep folders exceed a socket path's 107 bytes
		"password_encryption":     "scram-sha-256",
		"fsync":                   "on",
		"full_page_writes":        "on",
		"synchronous_commit":      "on",
		"wal_level":               "logical",
		"max_wal_senders":         "20",
		"max_replication_slots":   "20",
		"max_slot_wal_keep_size":  "4GB", // a dead reader loses its slot before we lose the disk
		"wal_sender_timeout":      "30s",
		"max_wal_size":            "1GB",
		"max_connections":         "100",
		"shared_buffers":          "128MB",
		"jit":                     "off", // costs more than it saves on short statements
		"timezone":                "UTC",
		"log_timezone":            "UTC",
		"log_line_prefix":         "%m [%p] %q%u@%d %a ",
		"logging_collector":       "off",
	}
}

// writeSettings rewrites the file that Waybill owns. What a user puts into
// postgresql.conf above the include, or sets by ALTER SYSTEM, stays.
func writeSettings(data string, own *owner, port int, extra map[string]string) error {
	all := baseSettings(port)
	maps.Copy(all, extra)
	var b strings.Builder
	b.WriteString("# Written at each start. Change settings with ALTER SYSTEM instead.\n")
	for _, name := range slices.Sorted(maps.Keys(all)) {
		fmt.Fprintf(&b, "%s = '%s'\n", name, strings.ReplaceAll(all[name], "'", "''"))
	}
	path := filepath.Join(data, settingsFile)
	if err := writeDurably(path, []byte(b.String()), own); err != nil {
		return fmt.Errorf("write settings: %w", err)
	}
	return include(filepath.Join(data, "postgresql.conf"))
}

func include(conf string) error {
	line := []byte("include '" + settingsFile + "'\n")
	// The file is the server's user's: a link there may lead to one that is not.
	f, err := os.OpenFile(conf, os.O_APPEND|os.O_RDWR|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return fmt.Errorf("include settings: %w", err)
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("read settings: %w", err)
	}
	if bytes.Contains(raw, line) {
		return nil
	}
	if _, err := f.Write(append([]byte("\n"), line...)); err != nil {
		return fmt.Errorf("include settings: %w", err)
	}
	return f.Sync()
}
