package doctor

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
)

func walLevel(ctx context.Context, s *Subject) ([]Finding, error) {
	var level string
	if err := s.db.QueryRow(ctx, `SHOW wal_level`).Scan(&level); err != nil {
		return nil, err
	}
	switch {
	case level == "logical":
		return ok("logical"), nil
	case !s.fromWAL():
		return ok("%s, which is enough in mode poll", level), nil
	}
	return fail(level, "the relay reads committed events from the WAL, which says too little below logical",
		"ALTER SYSTEM SET wal_level = 'logical', then restart the server (managed servers: RDS rds.logical_replication = 1, Cloud SQL cloudsql.logical_decoding = on); or read the table instead: outbox: {relay: poll}"), nil
}

// synchronousCommit looks at the value of a session such as the program's: it
// may be set for the role or the database alone.
func synchronousCommit(ctx context.Context, s *Subject) ([]Finding, error) {
	var value, source string
	err := s.db.QueryRow(ctx, `SELECT setting, source FROM pg_settings WHERE name = 'synchronous_commit'`).Scan(&value, &source)
	if err != nil {
		return nil, err
	}
	if value != "off" {
		return ok("%s", value), nil
	}
	cc := s.db.Config().ConnConfig
	mend := "ALTER SYSTEM SET synchronous_commit = 'on'; SELECT pg_reload_conf()"
	switch source {
	case "database":
		mend = "ALTER DATABASE " + ident(cc.Database) + " RESET synchronous_commit"
	case "user":
		mend = "ALTER ROLE " + ident(cc.User) + " RESET synchronous_commit"
	case "database user":
		mend = "ALTER ROLE " + ident(cc.User) + " IN DATABASE " + ident(cc.Database) + " RESET synchronous_commit"
	case "client":
		mend = "take synchronous_commit out of the connection string"
	}
	return warn("off, by "+source, "a commit reaches the WAL only when the server's writer comes round, and is published that much later (p50 137 ms instead of 1.5 ms was measured); a crash of the server loses the last commits", mend), nil
}

func ident(name string) string { return pgx.Identifier{name}.Sanitize() }

// room looks whether the relay finds a slot and a sender.
func room(ctx context.Context, s *Subject) ([]Finding, error) {
	var slots, maxSlots, senders, maxSenders int
	var ours, reading bool
	err := s.db.QueryRow(ctx, `SELECT (SELECT count(*) FROM pg_replication_slots), current_setting('max_replication_slots')::int,
		(SELECT count(*) FROM pg_stat_replication WHERE application_name IS DISTINCT FROM '`+ourName+`'), current_setting('max_wal_senders')::int,
		EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1),
		EXISTS (SELECT FROM pg_replication_slots WHERE slot_name = $1 AND active)`, s.Relay.Slot).
		Scan(&slots, &maxSlots, &senders, &maxSenders, &ours, &reading)
	if err != nil {
		return nil, err
	}
	what := fmt.Sprintf("%d of %d replication slots, %d of %d senders are taken", slots, maxSlots, senders, maxSenders)
	mend := fmt.Sprintf("ALTER SYSTEM SET max_replication_slots = %d; ALTER SYSTEM SET max_wal_senders = %d, then restart the server; or drop a slot that nobody reads", max(10, 2*slots), max(10, 2*senders, 2*slots))
	noSlot, noSender := slots >= maxSlots, senders >= maxSenders
	switch {
	case !s.fromWAL():
		return ok("%s; none is needed in mode poll", what), nil
	case noSlot && !ours, noSender && !reading:
		return fail(what, "the relay needs one of each and finds none", mend), nil
	case noSlot, noSender:
		return warn(what, "nothing else can be replicated: no table changes, no replica", mend), nil
	}
	return ok("%s", what), nil
}

// logicalMessages looks who may write into the stream of events.
func logicalMessages(ctx context.Context, s *Subject) ([]Finding, error) {
	if !s.fromWAL() {
		return ok("not used in mode poll"), nil
	}
	var ours, everybody bool
	err := s.db.QueryRow(ctx, `SELECT bool_and(has_function_privilege(oid, 'EXECUTE')), bool_or(proacl IS NULL OR
			EXISTS (SELECT FROM aclexplode(proacl) WHERE grantee = 0 AND privilege_type = 'EXECUTE'))
		FROM pg_proc WHERE proname = 'pg_logical_emit_message'`).Scan(&ours, &everybody)
	if err != nil {
		return nil, err
	}
	grant := func(verb, to string) string {
		sql := ""
		for _, of := range []string{"text", "bytea"} {
			sql += fmt.Sprintf("%s EXECUTE ON FUNCTION pg_logical_emit_message(boolean, text, %s%s) %s; ", verb, of, s.flushArgument(), to)
		}
		return sql
	}
	role := ident(s.db.Config().ConnConfig.User)
	switch {
	case !ours:
		return fail("this role may not write logical messages", "the relay keeps its slot moving with one every ten seconds, and in mode message each event is one",
			grant("GRANT", "TO "+role)+"as a superuser, in this database"), nil
	case everybody && s.messages():
		return warn("every role may write logical messages", "whoever may connect to this database can forge an event",
			grant("REVOKE", "FROM PUBLIC")+grant("GRANT", "TO "+role)+"as a superuser, in this database"), nil
	}
	return ok("this role may write them"), nil
}

// flushArgument is what Postgres 17 added to the function.
func (s *Subject) flushArgument() string {
	if s.major() >= 17 {
		return ", boolean"
	}
	return ""
}
