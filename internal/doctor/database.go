package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/waybillhq/waybill/outbox/relay"
	"github.com/waybillhq/waybill/pg"
)

// ourName is what the server knows the doctor's sessions by.
const ourName = "waybill doctor"

// minMajor is the oldest Postgres that Waybill is tested on.
const minMajor = 14

// lookAtDatabase runs the checks of the database, those of its tables only
// where there are any.
func lookAtDatabase(ctx context.Context, s Subject) []Finding {
	found := check{"database", connect}.run(ctx, &s)
	if s.db == nil {
		return found
	}
	defer s.db.Close()
	if s.Relay.Slot == "" {
		s.Relay.Slot = relay.SlotName(s.db.Config().ConnConfig.Database)
	}
	found = append(found, all(ctx, &s, databaseChecks())...)
	there := check{"tables", tablesThere}.run(ctx, &s)
	found = append(found, there...)
	if there[0].Verdict != OK {
		return found
	}
	return append(found, all(ctx, &s, tableChecks())...)
}

// databaseChecks need a database alone.
func databaseChecks() []check {
	return []check{
		{"pooler", pooler},
		{"replication", replication},
		{"wal_level", walLevel},
		{"synchronous_commit", synchronousCommit},
		{"room", room},
		{"slot", slot},
		{"other slots", otherSlots},
		{"WAL budget", walBudget},
		{"failover", failover},
		{"logical messages", logicalMessages},
		{"clock", clock},
		{"transactions", transactions},
		{"prepared", prepared},
		{"held rows", heldRows},
		{"cdc slot", cdcSlot},
		{"cdc tables", cdcTables},
	}
}

// tableChecks need our tables in it.
func tableChecks() []check {
	return []check{
		{"publication", publication},
		{"days", days},
		{"default partitions", defaultPartitions},
		{"backlog", backlog},
		{"stopped partitions", stopped},
		{"parked events", parked},
		{"webhooks", webhooks},
		{"incidents", incidents},
	}
}

// connect opens the database as the program does.
func connect(ctx context.Context, s *Subject) ([]Finding, error) {
	db, err := pg.Open(ctx, unprepared(s.DatabaseURL), pg.Config{ApplicationName: ourName, MaxConns: 4})
	if err != nil {
		mend := "check the connection string, that the server runs, and that it lets this host and role in: psql \"$WAYBILL_DATABASE_URL\""
		if s.Up != "" {
			mend = "start it: " + s.Up
		}
		if strings.Contains(err.Error(), unsupportedParameter) {
			mend = pastThePooler
		}
		return fail(err.Error(), "nothing works without the database", mend), nil
	}
	var version, at string
	var standby bool
	err = db.QueryRow(ctx, `SELECT current_setting('server_version'), current_setting('server_version_num')::int,
		coalesce(host(inet_server_addr()) || ':' || inet_server_port(), 'a socket'), pg_is_in_recovery()`).
		Scan(&version, &s.version, &at, &standby)
	if err != nil {
		db.Close()
		return nil, err
	}
	s.db = db
	cc := db.Config().ConnConfig
	what := fmt.Sprintf("Postgres %s at %s, database %s, role %s", version, at, cc.Database, cc.User)
	switch {
	case standby:
		return fail(what+", a replica", "a replica takes no writes",
			"name the primary in WAYBILL_DATABASE_URL, or several hosts with target_session_attrs=read-write"), nil
	case s.major() < minMajor:
		return warn(what, fmt.Sprintf("Waybill is tested on %d and later", minMajor), "upgrade the server"), nil
	}
	return ok("%s", what), nil
}

// unprepared has statements run without being prepared: a pooler, which is one
// of the things looked for, may lose what was prepared.
func unprepared(dsn string) string {
	const setting = "default_query_exec_mode=exec"
	switch {
	case !strings.Contains(dsn, "://"):
		return dsn + " " + setting
	case strings.Contains(dsn, "?"):
		return dsn + "&" + setting
	}
	return dsn + "?" + setting
}

// code is the SQLSTATE of err, empty if it has none.
func code(err error) string {
	var server *pgconn.PgError
	if errors.As(err, &server) {
		return server.Code
	}
	return ""
}
