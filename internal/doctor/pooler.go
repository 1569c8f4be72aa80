package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/waybillhq/waybill/pg"
)

// unsupportedParameter is what PgBouncer, and no Postgres, answers to a
// parameter of a session that it does not pass on.
const unsupportedParameter = "unsupported startup parameter"

const pastThePooler = "name the server itself in WAYBILL_DATABASE_URL, not the pooler before it (PgBouncer mostly listens on 6432 and the server on 5432). Waybill pools by itself"

// pooler looks whether something stands between us and the server. A server
// tells a session the number of its process when it begins; a pooler tells
// another number. Where two sessions that are both open meet the same process,
// they share it between transactions.
func pooler(ctx context.Context, s *Subject) ([]Finding, error) {
	first, err := s.db.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer first.Release()
	second, err := s.db.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer second.Release()
	told := first.Conn().PgConn().PID()
	pid, err := backend(ctx, first)
	if err != nil {
		return nil, err
	}
	other, err := backend(ctx, second)
	if err != nil {
		return nil, err
	}
	switch {
	case pid == other:
		return fail("a pooler that gives each transaction another session", "the relay's slot and lock, notifications, and prepared statements belong to a session and do not survive it", pastThePooler), nil
	case pid != told:
		return warn("a pooler with a session for each client", "it may refuse the relay's replication connection, and adds a hop to every statement", pastThePooler), nil
	}
	return ok("none: sessions are the server's own"), nil
}

func backend(ctx context.Context, c *pgxpool.Conn) (pid uint32, err error) {
	err = c.QueryRow(ctx, `SELECT pg_backend_pid()`).Scan(&pid)
	return pid, err
}

// replication opens the connection that a relay needs.
func replication(ctx context.Context, s *Subject) ([]Finding, error) {
	if !s.fromWAL() {
		return ok("not used in mode poll"), nil
	}
	role := ident(s.db.Config().ConnConfig.User)
	dsn, err := pg.ReplicationDSN(s.DatabaseURL)
	if err != nil {
		return nil, err
	}
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, err
	}
	cfg.RuntimeParams["application_name"] = ourName // or the next look would find a sender taken, by us
	conn, err := pgconn.ConnectConfig(ctx, cfg)
	if err == nil {
		_, err = conn.Exec(ctx, "IDENTIFY_SYSTEM").ReadAll()
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(closing)
	}
	if err == nil {
		return ok("role %s may replicate, and a connection for it stands", role), nil
	}
	var mend string
	switch {
	case strings.Contains(err.Error(), unsupportedParameter):
		mend = pastThePooler
	case code(err) == "42501", strings.Contains(err.Error(), "replication role"), strings.Contains(err.Error(), "REPLICATION attribute"):
		mend = fmt.Sprintf("ALTER ROLE %[1]s REPLICATION (as a superuser; on RDS: GRANT rds_replication TO %[1]s)", role)
	case code(err) == "28000":
		mend = fmt.Sprintf("let it in by pg_hba.conf: host %s %s ADDRESS scram-sha-256, then SELECT pg_reload_conf()", ident(s.db.Config().ConnConfig.Database), role)
	case code(err) == "53300":
		mend = "ALTER SYSTEM SET max_wal_senders = 20, then restart the server"
	default:
		mend = "see the server's log; the role needs REPLICATION and an entry in pg_hba.conf"
	}
	return fail(err.Error(), "the relay reads committed events over a replication connection", mend), nil
}
