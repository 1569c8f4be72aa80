package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/waybillhq/waybill/cdc"
)

// undefinedTable is the SQLSTATE of a table that is not there.
const undefinedTable = "42P01"

// cdcSlot looks at the slot that changes of tables are read from. It keeps WAL
// from its first moment on, for a reader that may have been switched off.
func cdcSlot(ctx context.Context, s *Subject) ([]Finding, error) {
	st, err := cdc.ReadStatus(ctx, s.db, "")
	if code(err) == undefinedTable {
		return ok("none: changes of tables were never published here"), nil
	}
	if err != nil {
		return nil, err
	}
	const stopped = "changes of tables are not published"
	run := s.start("waybill run cdc, or waybill up")
	fate, err := fateOfUnread(ctx, s)
	if err != nil {
		return nil, err
	}
	sl := st.Slot
	what := fmt.Sprintf("%s, %s of WAL not confirmed, %s kept, status %s", sl.Name, size(sl.LagBytes), size(sl.RetainedBytes), or(sl.WALStatus, "unknown"))
	switch {
	case !sl.Exists && len(st.Tables) == 0:
		return ok("none, and no table to publish"), nil
	case !sl.Exists:
		return warn(sl.Name+" is missing", stopped+"; what changed meanwhile will be told by its result alone", run+", which makes it anew and reads every table again; or waybill cdc drop, if none is to be published any more"), nil
	case sl.WALStatus == "lost":
		return fail(what, "the server threw away WAL that was not read; every table has to be read again", run+", which makes the slot anew"), nil
	case sl.WALStatus == "unreserved":
		return fail(what, "it holds more WAL than max_slot_wal_keep_size and is about to be lost", run+"; if it runs, find what holds it up: waybill cdc status"), nil
	case !sl.Active:
		return warn(what+", inactive", stopped+", and the server keeps WAL for them "+fate, run+"; or, if none are to be published any more, waybill cdc drop"), nil
	}
	return ok("%s, active", what), nil
}

// fateOfUnread says what becomes of a slot that nobody reads.
func fateOfUnread(ctx context.Context, s *Subject) (string, error) {
	var limit *int64
	err := s.db.QueryRow(ctx, `SELECT (SELECT nullif(setting::bigint, -1) * 1024 * 1024 FROM pg_settings WHERE name = 'max_slot_wal_keep_size')`).Scan(&limit)
	if err != nil || limit == nil {
		return "until its disk is full", err
	}
	return fmt.Sprintf("up to max_slot_wal_keep_size, %s; then the slot is lost and every table has to be read again", size(limit)), nil
}

// suspended are tables that cdc cannot publish. They are in no publication.
func suspended(ctx context.Context, s *Subject) ([]Finding, error) {
	st, err := cdc.ReadStatus(ctx, s.db, "")
	if code(err) == undefinedTable {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []string
	for _, t := range st.Tables {
		if t.Error != nil {
			list = append(list, t.Table+": "+*t.Error)
		}
	}
	if len(list) == 0 {
		return nil, nil
	}
	return fail("not published: "+some(list), "the topics of these tables stand still", "what each says; waybill cdc status has them all"), nil
}

// cdcTables looks at the tables whose row changes are published, or should be.
func cdcTables(ctx context.Context, s *Subject) ([]Finding, error) {
	if found, err := suspended(ctx, s); err != nil || found != nil {
		return found, err
	}
	rows, err := s.db.Query(ctx, `SELECT DISTINCT leaf.oid::regclass::text FROM pg_publication p
		JOIN pg_publication_tables t USING (pubname)
		JOIN pg_namespace n ON n.nspname = t.schemaname
		JOIN pg_class c ON c.relnamespace = n.oid AND c.relname = t.tablename
		CROSS JOIN LATERAL (SELECT c.oid WHERE c.relkind = 'r' UNION SELECT relid FROM pg_partition_tree(c.oid) WHERE isleaf) part (oid)
		JOIN pg_class leaf ON leaf.oid = part.oid
		LEFT JOIN pg_index pk ON pk.indrelid = leaf.oid AND pk.indisprimary AND pk.indisvalid AND pk.indimmediate
		LEFT JOIN pg_index chosen ON chosen.indrelid = leaf.oid AND chosen.indisreplident AND chosen.indisvalid
		WHERE p.pubname LIKE 'waybill\_cdc%' AND (p.pubupdate OR p.pubdelete)
			AND (leaf.relreplident = 'n' OR leaf.relreplident = 'd' AND pk.indexrelid IS NULL
				OR leaf.relreplident = 'i' AND chosen.indexrelid IS NULL)
		ORDER BY 1`)
	if err != nil {
		return nil, err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	if len(tables) > 0 {
		var mend []string
		for _, t := range tables {
			mend = append(mend, fmt.Sprintf("ALTER TABLE %s REPLICA IDENTITY FULL", t))
		}
		return fail("no replica identity: "+strings.Join(tables, ", "), "Postgres refuses the application's own updates and deletes of a published table without one",
			"give it a primary key, or "+some(mend)), nil
	}
	var n int64
	err = s.db.QueryRow(ctx, `SELECT count(*) FROM pg_publication_tables WHERE pubname LIKE 'waybill\_cdc%'`).Scan(&n)
	if err != nil {
		return nil, err
	}
	return ok("%s published, each with a replica identity", plural(n, "table")), nil
}
