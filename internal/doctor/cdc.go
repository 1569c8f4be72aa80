package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// cdcTables looks at the tables whose row changes are published.
func cdcTables(ctx context.Context, s *Subject) ([]Finding, error) {
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
	var n int
	err = s.db.QueryRow(ctx, `SELECT count(*) FROM pg_publication_tables WHERE pubname LIKE 'waybill\_cdc%'`).Scan(&n)
	if err != nil {
		return nil, err
	}
	return ok("%d tables are published, each with a replica identity", n), nil
}
