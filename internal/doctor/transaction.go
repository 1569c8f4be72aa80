package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

const (
	openWhy = "a transaction left open keeps the relay's slot from moving on, a new slot from being made, partitions from being added or dropped, and dead rows from being cleared, in all databases of the server"
	// unseen is of sessions of roles whose activity this one may not see.
	unseen = "; %d sessions of other roles cannot be seen: GRANT pg_monitor TO %s"
)

// transactions looks for those that have been open for long.
func transactions(ctx context.Context, s *Subject) ([]Finding, error) {
	rows, err := s.db.Query(ctx, `SELECT pid, coalesce(usename, ''), coalesce(datname, ''), coalesce(application_name, ''), coalesce(state, ''),
			extract(epoch FROM clock_timestamp() - xact_start)::float8
		FROM pg_stat_activity WHERE backend_type NOT IN ('walsender', 'autovacuum worker') AND pid <> pg_backend_pid()
			AND clock_timestamp() - xact_start > $1::interval ORDER BY xact_start`, s.LongTransaction)
	if err != nil {
		return nil, err
	}
	var pid int
	var role, database, name, state string
	var age float64
	var list, ends []string
	_, err = pgx.ForEachRow(rows, []any{&pid, &role, &database, &name, &state, &age}, func() error {
		list = append(list, fmt.Sprintf("process %d of %s in %s (%s), %s for %s", pid, role, database, or(name, "no name"), state, seconds(age)))
		ends = append(ends, fmt.Sprintf("SELECT pg_terminate_backend(%d)", pid))
		return nil
	})
	if err != nil {
		return nil, err
	}
	var hidden int
	err = s.db.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity WHERE query = '<insufficient privilege>' AND datname IS NOT NULL`).Scan(&hidden)
	if err != nil {
		return nil, err
	}
	note := ""
	if hidden > 0 {
		note = fmt.Sprintf(unseen, hidden, ident(s.db.Config().ConnConfig.User))
	}
	if len(list) == 0 {
		return ok("none open for more than %s%s", s.LongTransaction, note), nil
	}
	return warn(some(list)+note, openWhy, "end what left it open, or: "+some(ends)+"; and ALTER SYSTEM SET idle_in_transaction_session_timeout = '1min'; SELECT pg_reload_conf()"), nil
}

// prepared looks for transactions that wait for the second phase of their
// commit, for which no session has to be open: they survive even a restart.
func prepared(ctx context.Context, s *Subject) ([]Finding, error) {
	rows, err := s.db.Query(ctx, `SELECT gid, owner, database, extract(epoch FROM clock_timestamp() - prepared)::float8
		FROM pg_prepared_xacts WHERE clock_timestamp() - prepared > $1::interval ORDER BY prepared`, s.LongTransaction)
	if err != nil {
		return nil, err
	}
	var gid, owner, database string
	var age float64
	var list, ends []string
	_, err = pgx.ForEachRow(rows, []any{&gid, &owner, &database, &age}, func() error {
		list = append(list, fmt.Sprintf("%q of %s in %s for %s", gid, owner, database, seconds(age)))
		ends = append(ends, "ROLLBACK PREPARED "+literal(gid))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return ok("no prepared transaction is older than %s", s.LongTransaction), nil
	}
	return warn(some(list), openWhy, "have its transaction manager end it, or in its database: "+some(ends)+" (or COMMIT PREPARED)"), nil
}

// oldRows is how many transactions dead rows may be held for. Postgres begins
// to force its cleaning at 200 million.
const oldRows = 10_000_000

// heldRows looks for what keeps dead rows from being cleared.
func heldRows(ctx context.Context, s *Subject) ([]Finding, error) {
	rows, err := s.db.Query(ctx, `SELECT what, age FROM (
			SELECT 'process ' || pid || ' of ' || coalesce(usename, '?'), age(backend_xmin)
			FROM pg_stat_activity WHERE backend_xmin IS NOT NULL
			UNION ALL SELECT 'prepared transaction ' || gid, age(transaction) FROM pg_prepared_xacts
			UNION ALL SELECT 'slot ' || slot_name, greatest(age(xmin), age(catalog_xmin)) FROM pg_replication_slots
		) held (what, age) WHERE age > $1 ORDER BY age DESC`, s.oldRows)
	if err != nil {
		return nil, err
	}
	var what string
	var age int64
	var list []string
	_, err = pgx.ForEachRow(rows, []any{&what, &age}, func() error {
		list = append(list, fmt.Sprintf("%s holds %d transactions", what, age))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(list) == 0 {
		return ok("nothing holds dead rows for more than %d transactions", s.oldRows), nil
	}
	ends := "end it: SELECT pg_terminate_backend(PROCESS)"
	if strings.HasPrefix(list[0], "slot") {
		ends = "start what reads the slot, or SELECT pg_drop_replication_slot('SLOT')"
	} else if strings.HasPrefix(list[0], "prepared") {
		ends = "ROLLBACK PREPARED 'ID', in its database"
	}
	return warn(some(list), "tables grow with rows that nobody needs, and at 200 million the server cleans whatever else it has to do", ends), nil
}
