package relay

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/pg"
	"github.com/waybillhq/waybill/pg/local"
)

// beside reads the relay's WAL with Postgres' own client, from two slots
// beside the relay's: one for before the relay, one for after.
type beside struct {
	db       *pgx.ConnConfig
	dsn      string
	program  string
	messages bool // are what is read, not rows
	slots    [2]string
}

// newBeside makes the slots. It needs WAL of level logical, also where the
// relay does not.
func (r *run) newBeside(ctx context.Context) (*beside, error) {
	program, err := local.Program(ctx, "pg_recvlogical")
	if err != nil {
		return nil, err
	}
	b := &beside{db: r.engines.DB.Config().ConnConfig, program: program, messages: !r.mode.table}
	if b.dsn, err = pg.ReplicationDSN(withoutPassword(r.engines.DSN)); err != nil {
		return nil, err
	}
	for i := range b.slots {
		b.slots[i] = fmt.Sprintf("%s_%d", r.engines.Name(), i)
		if _, err := r.engines.DB.Exec(ctx, `SELECT pg_create_logical_replication_slot($1, 'pgoutput')`, b.slots[i]); err != nil {
			return nil, fmt.Errorf("create slot %s: %w", b.slots[i], err)
		}
	}
	return b, nil
}

// skip moves the slots to the end of the WAL: what comes then is what is read.
func (r *run) skip(ctx context.Context) error {
	if r.beside == nil {
		return nil
	}
	for _, slot := range r.beside.slots {
		if _, err := r.engines.DB.Exec(ctx, `SELECT pg_replication_slot_advance($1, pg_current_wal_lsn())`, slot); err != nil {
			return fmt.Errorf("advance slot %s: %w", slot, err)
		}
	}
	return nil
}

// read is how long pg_recvlogical takes for the WAL up to end, from one
// of the slots.
func (b *beside) read(ctx context.Context, slot, end string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, b.program, "-d", b.dsn, "--slot", slot, "--start", "--no-loop", //nolint:gosec // Postgres' own
		"-f", "/dev/null", "--endpos", end, "-o", "proto_version=1", "-o", "binary=true", "-o", "publication_names=waybill_outbox", "-o", "messages="+strconv.FormatBool(b.messages))
	cmd.Env = append(os.Environ(), "PGPASSWORD="+b.db.Password)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		return 0, errors.Join(ctx.Err(), fmt.Errorf("pg_recvlogical: %w: %s", err, strings.TrimSpace(string(out))))
	}
	return time.Since(began), nil
}

var passwordPair = regexp.MustCompile(`\bpassword\s*=\s*('(\\.|[^'\\])*'|\S*)`)

// withoutPassword is for a command line, which all users of the machine see.
func withoutPassword(dsn string) string {
	if u, err := url.Parse(dsn); err == nil && strings.HasPrefix(u.Scheme, "postgres") {
		if u.User != nil {
			u.User = url.User(u.User.Username())
		}
		q := u.Query()
		q.Del("password")
		u.RawQuery = q.Encode()
		return u.String()
	}
	return passwordPair.ReplaceAllString(dsn, "")
}
